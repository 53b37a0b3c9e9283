package access

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// Claims is what a verified OIDC token says.
type Claims struct {
	Issuer, Subject string
	Audiences       []string
	Expires         time.Time
	All             map[string]any
}

// claimRule is the condition of a grant on claims.
type claimRule struct {
	issuer, audience, claim, value string
}

func (r *claimRule) match(c *Claims) bool {
	return c != nil && c.Issuer == r.issuer && slices.Contains(c.Audiences, r.audience) && c.has(r.claim, r.value)
}

// has reports whether a claim is a value, or a list with it. An e-mail address counts
// only if the issuer says that it is verified.
func (c *Claims) has(claim, value string) bool {
	if verified, _ := c.All["email_verified"].(bool); claim == "email" && !verified {
		return false
	}
	switch found := lookUp(c.All, claim).(type) {
	case string:
		return found == value
	case []any:
		return slices.ContainsFunc(found, func(each any) bool { text, ok := each.(string); return ok && text == value })
	}
	return false
}

// lookUp finds a claim by name, or by the path to it: realm.roles is roles in realm.
func lookUp(in map[string]any, path string) any {
	if found, ok := in[path]; ok {
		return found
	}
	for at := range path {
		if path[at] != '.' {
			continue
		}
		if below, ok := in[path[:at]].(map[string]any); ok {
			return lookUp(below, path[at+1:])
		}
	}
	return nil
}

// identity names the subject of a token.
func (c *Claims) identity() string { return "oidc:" + c.Issuer + "#" + c.Subject }

func compileClaims(o *configv1.Oidc) (*claimRule, error) {
	r := &claimRule{o.GetIssuer(), o.GetAudience(), o.GetClaim(), o.GetValue()}
	if r.issuer == "" || r.audience == "" || r.claim == "" || r.value == "" {
		return nil, errors.New("needs issuer, audience, claim and value: without one of them, too many tokens would do")
	}
	at, err := url.Parse(r.issuer)
	if err != nil || at.Host == "" || at.Scheme != "https" && (at.Scheme != "http" || !loopback(at.Hostname())) {
		return nil, fmt.Errorf("issuer: %q is no https:// URL", r.issuer)
	}
	if at.RawQuery != "" || at.Fragment != "" {
		return nil, fmt.Errorf("issuer: %q has a query or a fragment, which no issuer has", r.issuer)
	}
	return r, nil
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.Unmap().IsLoopback()
}

// Issuers lists the issuers of OIDC tokens that grants name.
func (p *Policy) Issuers() (all []string) {
	for i := range p.grants {
		if r := p.grants[i].claims; r != nil && !slices.Contains(all, r.issuer) {
			all = append(all, r.issuer)
		}
	}
	return all
}
