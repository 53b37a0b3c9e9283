package config

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/peer/certs"
)

// Bounds of replication.
const (
	minCommitInterval = time.Millisecond
	maxCommitInterval = time.Second
)

// examplePeer is an address to listen on for other replicas.
const examplePeer = "127.0.0.1:18100"

// EtcdTLS returns how to connect to etcd; nil if its endpoints are http. Each connection reads hdsd's own
// certificate, so that a renewed one is in use; the authorities are read once.
func EtcdTLS(e *configv1.Replication_Etcd) (*tls.Config, error) {
	if !slices.ContainsFunc(e.GetEndpoints(), isHTTPS) {
		return nil, nil
	}
	chain, key := e.GetTls().GetCertificateChainFile(), e.GetTls().GetPrivateKeyFile()
	config, err := ReceiverTLS(e.GetTls().GetCaFile(), chain, key)
	if err != nil {
		return nil, err
	}
	if config.Certificates != nil {
		config.Certificates = nil
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(chain, key)
			return &pair, err
		}
	}
	return config, nil
}

func isHTTPS(endpoint string) bool { return strings.HasPrefix(endpoint, "https:") }

// checkReplication checks the replication, and refuses what replicas cannot do yet.
func checkReplication(c *checks, cfg *Config) {
	r := cfg.GetReplication()
	if r == nil {
		return
	}
	switch id := cfg.GetNodeId(); {
	case id == "":
		c.add("node_id", "is needed with replication, where it is the id of this replica: write one that no other replica has, such as hdsd-1")
	case strings.Contains(id, "/"):
		c.add("node_id", "%q has a slash, which is not possible in the id of a replica: write one such as hdsd-1", id)
	}
	checkEtcd(c, r.GetEtcd())
	checkPeer(c, cfg, r.GetPeer())
	c.duration("replication.session_ttl", r.GetSessionTtl(), minTTL, maxWait)
	if ttl := r.GetSessionTtl().AsDuration(); ttl >= minTTL && ttl%time.Second != 0 {
		c.warn("replication.session_ttl", "is %s, and etcd grants whole seconds: write %s, which it grants for this",
			durationText(r.GetSessionTtl()), durationText(durationpb.New(ttl.Truncate(time.Second)+time.Second)))
	}
	c.duration("replication.commit_interval", r.GetCommitInterval(), minCommitInterval, maxCommitInterval)
	const alone = "or remove replication, for one coordinator alone"
	if cfg.GetRecording() != nil {
		c.add("recording", "is not possible with replication yet: remove it, %s", alone)
	}
	if zones := cfg.GetDataPlanes().GetZoneHealth(); zones != configv1.ZoneHealth_GLOBAL {
		c.add("data_planes.zone_health", "%s is not possible with replication yet: write GLOBAL, %s", zones, alone)
	}
}

// checkEtcd checks how to reach etcd. Package log/etcd has the same rules for its options.
func checkEtcd(c *checks, e *configv1.Replication_Etcd) {
	const field = "replication.etcd"
	checkEndpoints(c, field+".endpoints", e.GetEndpoints())
	if prefix := e.GetPrefix(); prefix != "" && (prefix[0] != '/' || strings.Trim(prefix, "/") == "") {
		c.add(field+".prefix", "%q does not begin with a slash and a name: write one such as %s", prefix, defaultPrefix)
	}
	if files := e.GetTls(); files != nil {
		if len(e.GetEndpoints()) > 0 && !slices.ContainsFunc(e.GetEndpoints(), isHTTPS) {
			c.add(field+".tls", "has no effect on endpoints with http: write https, or remove tls")
		}
		if _, err := ReceiverTLS(files.GetCaFile(), files.GetCertificateChainFile(), files.GetPrivateKeyFile()); err != nil {
			c.add(field+".tls", "%s", err)
		}
	}
	switch {
	case e.GetUsername() != "" && e.GetPasswordFile() == "":
		c.add(field+".password_file", "is needed with username: name a file with the user's password")
	case e.GetUsername() == "" && e.GetPasswordFile() != "":
		c.add(field+".username", "is needed with password_file: write whose password it has, or remove password_file")
	}
	secret(c, field+".password_file", e.GetPasswordFile())
}

func checkEndpoints(c *checks, field string, endpoints []string) {
	if len(endpoints) == 0 {
		c.add(field, "at least one is needed, and better all members of etcd, such as https://10.0.0.11:2379")
	}
	first, open := "", false
	for i, endpoint := range endpoints {
		name := fmt.Sprintf("%s[%d]", field, i)
		location, err := url.Parse(endpoint)
		if err != nil || location.Scheme != "http" && location.Scheme != "https" || endpoint != location.Scheme+"://"+location.Host || !isHostPort(location.Host) {
			c.add(name, "is not http://HOST:PORT or https://HOST:PORT, without a path, a user or a slash at the end: write one such as https://10.0.0.11:2379")
			continue
		}
		first = cmp.Or(first, location.Scheme)
		switch {
		case location.Scheme != first:
			c.add(name, "is %s, and the endpoints before are %s: write the same for all", location.Scheme, first)
		case slices.Contains(endpoints[:i], endpoint):
			c.add(name, "%s is in the list already: remove it, or name another member", endpoint)
		case location.Scheme == "http" && !open && !isLocal(location.Hostname()):
			open = true
			c.warn(name, "is http: whoever is on the network between can read and change the log, and read a password; write https, unless nobody else is there")
		}
	}
}

// checkPeer checks how replicas reach each other.
func checkPeer(c *checks, cfg *Config, p *configv1.Replication_Peer) {
	const field = "replication.peer"
	listener := &configv1.Listener{Address: p.GetAddress(), Tls: p.GetTls(), Insecure: p.GetInsecure()}
	address := c.listener(field, listener, examplePeer)
	if p.GetAddress() == "" {
		c.add(field+".address", "is needed: write IP:PORT to listen on for the other replicas, such as %s", examplePeer)
		address = netip.AddrPort{}
	}
	c.plaintext(field, listener, address, false)
	for _, other := range []struct{ name, address string }{
		{"grpc", cmp.Or(cfg.GetGrpc().GetAddress(), defaultGRPCAddress)},
		{"http", cmp.Or(cfg.GetHttp().GetAddress(), defaultHTTPAddress)},
		{"probes", cfg.GetProbes().GetAddress()},
		{"admin", cfg.GetAdmin().GetAddress()},
	} {
		if taken, err := netip.ParseAddrPort(other.address); err == nil && taken == address && address.Port() != 0 {
			c.add(field+".address", "%s is the address of %s already: use another port", address, other.name)
		}
	}
	checkAdvertised(c, field+".advertise", p.GetAdvertise(), address)
	if p.GetTls() != nil {
		checkPeerTLS(c, field+".tls", p.GetTls())
	}
}

// checkAdvertised checks where other replicas reach this one, which listens on an address.
func checkAdvertised(c *checks, field, advertised string, address netip.AddrPort) {
	given, _ := netip.ParseAddrPort(advertised)
	switch {
	case advertised == "" && address.IsValid() && address.Addr().Unmap().IsUnspecified():
		c.add(field, "is needed, as %s stands for all addresses of this machine: write HOST:PORT at which the other replicas reach this one", address)
	case advertised == "":
	case !isHostPort(advertised):
		c.add(field, "%q is not HOST:PORT, such as hdsd-1.example.com:18100 or 10.0.0.1:18100", advertised)
	case given.IsValid() && given.Addr().Unmap().IsUnspecified():
		c.add(field, "%s stands for all addresses of this machine: write the one at which the other replicas reach this one", advertised)
	}
}

// checkPeerTLS checks that a replica can be a server and a client of the others with the same files.
func checkPeerTLS(c *checks, field string, files *configv1.ServerTls) {
	if !certs.Mutual(files) {
		c.add(field+".client_ca_file", "is needed: replicas know each other by their certificates; name the file with the authorities of these")
		return
	}
	if files.GetSpiffeWorkloadApi() != nil {
		return
	}
	pair, err := tls.LoadX509KeyPair(files.GetCertificateChainFile(), files.GetPrivateKeyFile())
	if err != nil {
		return // reported elsewhere
	}
	if !hasUsages(pair.Leaf, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth) {
		c.add(field+".certificate_chain_file", "%s: is not for servers and clients, and a replica is both: have one issued with the extended key usages serverAuth and clientAuth",
			files.GetCertificateChainFile())
		return
	}
	known, err := ReceiverTLS(files.GetClientCaFile(), "", "")
	if err != nil {
		return // reported elsewhere
	}
	options := x509.VerifyOptions{Roots: known.RootCAs, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	for _, raw := range pair.Certificate[1:] {
		if above, err := x509.ParseCertificate(raw); err == nil {
			options.Intermediates.AddCert(above)
		}
	}
	if _, err := pair.Leaf.Verify(options); errors.As(err, new(x509.UnknownAuthorityError)) {
		c.warn(field+".client_ca_file", "%s: has no authority of this replica's own certificate: a replica with the same file refuses this one; add the authority",
			files.GetClientCaFile())
	}
}

// hasUsages reports whether a certificate may be used for all of these.
func hasUsages(cert *x509.Certificate, usages ...x509.ExtKeyUsage) bool {
	if len(cert.ExtKeyUsage)+len(cert.UnknownExtKeyUsage) == 0 || slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny) {
		return true
	}
	for _, usage := range usages {
		if !slices.Contains(cert.ExtKeyUsage, usage) {
			return false
		}
	}
	return true
}

// isHostPort reports whether a text is HOST:PORT, where the port is not 0.
func isHostPort(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	onlyDigits := strings.Trim(host, "0123456789.") == "" // a mistyped IP address
	return !onlyDigits && !strings.HasPrefix(host, "*") && hostName.MatchString(host)
}

// isLocal reports whether a host is this machine.
func isLocal(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}
