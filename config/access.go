package config

import (
	"net/netip"

	"hdsd/access"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/certs"
)

func (c *checks) access(cfg *Config) {
	from := cfg.GetAccess()
	if from == nil {
		return
	}
	_, problems := access.Compile(from)
	for _, each := range problems {
		c.add("access."+each.Field, "%s", each.Message)
	}
	if len(from.GetGrants()) == 0 {
		c.warn("access.grants", "is empty: nobody may do anything; grant roles to somebody, or leave access out")
	}
	if from.GetMode() == configv1.Access_WARN {
		c.warn("access.mode", "is WARN: nothing is denied; set ENFORCE once no event access_denied names a caller that needs more")
	}
	certificates, tokens := false, false
	for _, each := range from.GetGrants() {
		certificates = certificates || each.GetSan() != ""
		tokens = tokens || each.GetTokenSha256() != "" || each.GetOidc() != nil
	}
	if certificates && !certs.Mutual(cfg.GetGrpc().GetTls()) && !certs.Mutual(cfg.GetHttp().GetTls()) {
		c.warn("access.grants", "have names in certificates (san), but neither grpc.tls nor http.tls has a client_ca_file or spiffe_workload_api to verify certificates by")
	}
	if tokens {
		c.plaintext("grpc", cfg.GetGrpc(), defaultGRPCAddress)
		c.plaintext("http", cfg.GetHttp(), defaultHTTPAddress)
	}
}

// plaintext warns where others can read tokens on their way.
func (c *checks) plaintext(field string, l *configv1.Listener, byDefault string) {
	text := l.GetAddress()
	if text == "" {
		text = byDefault
	}
	address, err := netip.ParseAddrPort(text)
	if err == nil && l.GetTls() == nil && !address.Addr().Unmap().IsLoopback() {
		c.warn(field+".insecure", "lets others read the bearer tokens of access.grants on their way to %s: give %s.tls", text, field)
	}
}
