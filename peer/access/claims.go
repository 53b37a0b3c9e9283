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

// Claims is the content of a verified OIDC token.
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
	return c != nil && c.Issuer == r.issuer && slices.Contains(c.Audiences, r.audience) && c.matches(r.claim, r.value)
}

// matches reports whether a claim is a value, or a list with it. An e-mail address counts only
// if the issuer has verified it.
func (c *Claims) matches(claim, value string) bool {
	if verified, _ := c.All["email_verified"].(bool); claim == "email" && !verified {
		return false
	}
	switch found := lookUp(c.All, claim).(type) {
	case string:
		return found == value
	case []any:
		return slices.ContainsFunc(found, func(v any) bool { text, ok := v.(string); return ok && text == value })
	}
	return false
}

// lookUp finds a claim by name, or by the path to it: realm.roles is roles in realm.
func lookUp(claims map[string]any, path string) any {
	if found, ok := claims[path]; ok {
		return found
	}
	for i := range path {
		if path[i] != '.' {
			continue
		}
		if nested, ok := claims[path[:i]].(map[string]any); ok {
			return lookUp(nested, path[i+1:])
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
	address, err := url.Parse(r.issuer)
	if err != nil || address.Host == "" || address.Scheme != "https" && (address.Scheme != "http" || !loopback(address.Hostname())) {
		return nil, fmt.Errorf("issuer: %q is no https:// URL", r.issuer)
	}
	if address.RawQuery != "" || address.Fragment != "" {
		return nil, fmt.Errorf("issuer: %q has a query or a fragment, which no issuer has", r.issuer)
	}
	return r, nil
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.Unmap().IsLoopback()
}

// Issuers lists the OIDC issuers named by grants.
func (p *Policy) Issuers() (issuers []string) {
	for i := range p.grants {
		if r := p.grants[i].claims; r != nil && !slices.Contains(issuers, r.issuer) {
			issuers = append(issuers, r.issuer)
		}
	}
	return issuers
}
