package check

import (
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// nameMatcher reports whether one of a certificate's alternative names matches.
type nameMatcher struct {
	kind    tlsv3.SubjectAltNameMatcher_SanType
	oid     string // of kind OTHER_NAME
	matches matcher
}

func nameMatchers(c *tlsv3.CertificateValidationContext) ([]nameMatcher, error) {
	typed := c.GetMatchTypedSubjectAltNames()
	for _, m := range c.GetMatchSubjectAltNames() { //nolint:staticcheck // Envoy still applies it
		for _, kind := range []tlsv3.SubjectAltNameMatcher_SanType{
			tlsv3.SubjectAltNameMatcher_DNS, tlsv3.SubjectAltNameMatcher_URI,
			tlsv3.SubjectAltNameMatcher_EMAIL, tlsv3.SubjectAltNameMatcher_IP_ADDRESS,
		} {
			typed = append(typed, &tlsv3.SubjectAltNameMatcher{SanType: kind, Matcher: m})
		}
	}
	var list []nameMatcher
	for i, m := range typed {
		n := nameMatcher{kind: m.GetSanType(), oid: m.GetOid()}
		if _, ok := nameTags[n.kind]; !ok {
			return nil, fmt.Errorf("match_typed_subject_alt_names[%d]: san_type %s is not supported", i, n.kind)
		}
		var err error
		if n.matches, err = newMatcher(m.GetMatcher()); err != nil {
			return nil, fmt.Errorf("match_typed_subject_alt_names[%d]: %w", i, err)
		}
		// A DNS name may be a wildcard, which only exact matchers support.
		if exact, ok := m.GetMatcher().GetMatchPattern().(*matcherv3.StringMatcher_Exact); ok && n.kind == tlsv3.SubjectAltNameMatcher_DNS {
			n.matches = func(pattern string) bool { return matchesDNS(exact.Exact, pattern) }
		}
		list = append(list, n)
	}
	return list, nil
}

// nameTags are the tags of a GeneralName.
var nameTags = map[tlsv3.SubjectAltNameMatcher_SanType]int{
	tlsv3.SubjectAltNameMatcher_OTHER_NAME: 0, tlsv3.SubjectAltNameMatcher_EMAIL: 1,
	tlsv3.SubjectAltNameMatcher_DNS: 2, tlsv3.SubjectAltNameMatcher_URI: 6, tlsv3.SubjectAltNameMatcher_IP_ADDRESS: 7,
}

var subjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17}

func matchesName(list []nameMatcher, c *x509.Certificate) bool {
	for _, extension := range c.Extensions {
		if !extension.Id.Equal(subjectAltName) {
			continue
		}
		var names []asn1.RawValue
		if rest, err := asn1.Unmarshal(extension.Value, &names); err != nil || len(rest) > 0 {
			return false
		}
		return slices.ContainsFunc(list, func(m nameMatcher) bool {
			return slices.ContainsFunc(names, m.accepts)
		})
	}
	return false
}

func (m *nameMatcher) accepts(name asn1.RawValue) bool {
	if name.Class != asn1.ClassContextSpecific || name.Tag != nameTags[m.kind] {
		return false
	}
	text := string(name.Bytes)
	switch m.kind {
	case tlsv3.SubjectAltNameMatcher_IP_ADDRESS:
		ip, ok := netip.AddrFromSlice(name.Bytes)
		return ok && m.matches(ip.String())
	case tlsv3.SubjectAltNameMatcher_OTHER_NAME:
		var oid asn1.ObjectIdentifier
		rest, err := asn1.Unmarshal(name.Bytes, &oid)
		if err != nil || oid.String() != m.oid {
			return false
		}
		var explicit, value asn1.RawValue
		if _, err := asn1.Unmarshal(rest, &explicit); err != nil {
			return false
		}
		if _, err := asn1.Unmarshal(explicit.Bytes, &value); err != nil {
			return false
		}
		text = string(value.Bytes)
	}
	return m.matches(text)
}

// matchesDNS reports whether a name matches a certificate's pattern, whose first label
// may have one wildcard.
func matchesDNS(name, pattern string) bool {
	name, pattern = strings.ToLower(name), strings.ToLower(pattern)
	if name == pattern {
		return true
	}
	label, domain, ok1 := strings.Cut(name, ".")
	wild, rest, ok2 := strings.Cut(pattern, ".")
	before, after, ok3 := strings.Cut(wild, "*")
	return ok1 && ok2 && ok3 && domain == rest && !strings.Contains(rest+after, "*") &&
		!strings.HasPrefix(wild, "xn--") && len(wild) <= len(label)+1 &&
		strings.HasPrefix(label, before) && strings.HasSuffix(label, after)
}
