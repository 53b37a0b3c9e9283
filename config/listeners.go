package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"time"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/peer/certs"
)

func (c *checks) listeners(cfg *Config) {
	grpc := c.listener("grpc", cfg.GetGrpc(), defaultGRPCAddress)
	http := c.listener("http", cfg.GetHttp(), defaultHTTPAddress)
	tokens := hasTokens(cfg.GetAccess())
	c.plaintext("grpc", cfg.GetGrpc(), grpc, tokens)
	c.plaintext("http", cfg.GetHttp(), http, tokens)
	c.hosts("http.allowed_hosts", cfg.GetHttp().GetAllowedHosts())
	if len(cfg.GetGrpc().GetAllowedHosts()) > 0 {
		c.warn("grpc.allowed_hosts", "has no effect: no web page can speak gRPC to hdsd; remove it, or write http.allowed_hosts")
	}
	if grpc.IsValid() && grpc == http && grpc.Port() != 0 {
		c.add("http.address", "%s is the gRPC address already: use another port", http)
	}
	if cfg.GetProbes() != nil {
		c.probes(cfg.GetProbes().GetAddress(), grpc, http)
	}
	if cfg.GetAdmin() != nil {
		checkAdmin(c, cfg.GetAdmin().GetAddress(), cfg.GetProbes().GetAddress(), grpc, http)
	}
}

func checkAdmin(c *checks, text, probes string, grpc, http netip.AddrPort) {
	address, err := netip.ParseAddrPort(text)
	switch {
	case err != nil:
		c.add("admin.address", "%q is not IP:PORT or [IP6]:PORT, such as 127.0.0.1:18082", text)
	case !address.Addr().Unmap().IsLoopback():
		c.add("admin.address", "%s can be reached from other machines: give an address of loopback, such as 127.0.0.1:18082", address)
	case address.Port() != 0 && (address == grpc || address == http || text == probes):
		c.add("admin.address", "%s is the address of grpc, http or probes already: use another port", address)
	}
}

func (c *checks) probes(text string, grpc, http netip.AddrPort) {
	address, err := netip.ParseAddrPort(text)
	switch {
	case err != nil:
		c.add("probes.address", "%q is not IP:PORT or [IP6]:PORT, such as 127.0.0.1:18081", text)
	case address.Port() != 0 && (address == grpc || address == http):
		c.add("probes.address", "%s is the address of grpc or http already: use another port", address)
	}
}

func (c *checks) listener(field string, listener *configv1.Listener, byDefault string) netip.AddrPort {
	text := listener.GetAddress()
	if text == "" {
		text = byDefault
	}
	address, err := netip.ParseAddrPort(text)
	if err != nil {
		c.add(field+".address", "%q is not IP:PORT or [IP6]:PORT, such as %s", text, byDefault)
		return netip.AddrPort{}
	}
	tls := listener.GetTls()
	switch open := !address.Addr().Unmap().IsLoopback(); {
	case tls != nil && listener.GetInsecure():
		c.warn(field+".insecure", "has no effect beside tls: remove it")
	case tls == nil && open && !listener.GetInsecure():
		c.add(field+".address", "%s can be reached from other machines without TLS: give tls, or an address as %s, or say insecure: true", text, byDefault)
	}
	if age := listener.GetMaxConnectionAge(); age.AsDuration() != 0 {
		c.duration(field+".max_connection_age", age, minConnectionAge, maxConnectionAge)
	}
	if tls != nil {
		c.tls(field+".tls", tls)
	}
	return address
}

var hostName = regexp.MustCompile(`^(\*\.)?([A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?$`)

func (c *checks) hosts(field string, hosts []string) {
	for i, host := range hosts {
		if !hostName.MatchString(host) {
			c.add(fmt.Sprintf("%s[%d]", field, i), "%q is no name of a host: write it without scheme and port, such as hdsd.example.com or *.example.com", host)
		}
	}
}

func (c *checks) tls(field string, tls *configv1.ServerTls) {
	if api := tls.GetSpiffeWorkloadApi(); api != nil {
		if tls.GetCertificateChainFile()+tls.GetPrivateKeyFile()+tls.GetClientCaFile() != "" {
			c.add(field+".spiffe_workload_api", "comes in place of files: remove certificate_chain_file, private_key_file and client_ca_file")
		}
		if wrong, err := certs.CheckWorkloadAPI(api); err != nil {
			c.add(field+".spiffe_workload_api."+wrong, "%s", err)
		}
		return
	}
	complete := true
	for name, path := range map[string]string{
		"certificate_chain_file": tls.GetCertificateChainFile(), "private_key_file": tls.GetPrivateKeyFile(),
	} {
		if path == "" {
			complete = false
			c.add(field+"."+name, "is needed for TLS")
		}
	}
	if !complete {
		return
	}
	problem, invalid := certs.Check(tls, time.Now())
	switch {
	case problem != nil:
		c.add(field+"."+problem.Field, "%s", problem)
	case invalid != nil:
		c.warn(field+"."+invalid.Field, "%s", invalid)
	}
}
