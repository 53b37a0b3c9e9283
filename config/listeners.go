package config

import (
	"net/netip"

	configv1 "hdsd/gen/hdsd/config/v1"
)

func (c *checks) listeners(cfg *Config) {
	grpc := c.listener("grpc", cfg.GetGrpc(), defaultGRPCAddress)
	http := c.listener("http", cfg.GetHttp(), defaultHTTPAddress)
	if grpc.IsValid() && grpc == http && grpc.Port() != 0 {
		c.add("http.address", "%s is the gRPC address already: use another port", http)
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
	if tls != nil {
		c.tls(field+".tls", tls)
	}
	return address
}

func (c *checks) tls(field string, tls *configv1.ServerTls) {
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
	if _, err := readIdentity(tls); err != nil {
		c.add(field+"."+err.field, "%s", err)
	}
}
