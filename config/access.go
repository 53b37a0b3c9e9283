package config

import (
	"net/netip"
	"slices"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/peer/access"
	"hdsd/peer/certs"
)

func (c *checks) access(cfg *Config) {
	message := cfg.GetAccess()
	if message == nil {
		return
	}
	_, problems := access.Compile(message)
	for _, p := range problems {
		c.add("access."+p.Field, "%s", p.Message)
	}
	if len(message.GetGrants()) == 0 {
		c.warn("access.grants", "is empty: nobody may do anything; grant roles to somebody, or leave access out")
	}
	if message.GetMode() == configv1.Access_WARN {
		c.warn("access.mode", "is WARN: nothing is denied; set ENFORCE once no event access_denied names a caller that needs more")
	}
	certificates := false
	for _, grant := range message.GetGrants() {
		certificates = certificates || grant.GetSan() != ""
	}
	if certificates && !certs.Mutual(cfg.GetGrpc().GetTls()) && !certs.Mutual(cfg.GetHttp().GetTls()) {
		c.warn("access.grants", "have names in certificates (san), but neither grpc.tls nor http.tls has a client_ca_file or spiffe_workload_api to verify certificates by")
	}
}

// hasTokens reports whether callers show tokens.
func hasTokens(message *configv1.Access) bool {
	return slices.ContainsFunc(message.GetGrants(), func(g *configv1.Grant) bool { return g.GetTokenSha256() != "" || g.GetOidc() != nil })
}

// plaintext warns where others can read what goes over a listener.
func (c *checks) plaintext(field string, l *configv1.Listener, address netip.AddrPort, tokens bool) {
	switch {
	case !address.IsValid() || l.GetTls() != nil || address.Addr().Unmap().IsLoopback() || !l.GetInsecure():
	case tokens:
		c.warn(field+".insecure", "lets others read the bearer tokens of access.grants on their way to %s: give %s.tls", address, field)
	default:
		c.warn(field+".insecure", "lets whoever reaches %s read and change what goes over it: give %s.tls, unless nobody else is on that network", address, field)
	}
}
