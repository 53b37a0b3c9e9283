package config

import (
	"fmt"
	"net/netip"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// Prefixes reads addresses and prefixes.
func Prefixes(texts []string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, text := range texts {
		prefix, err := addresses(text)
		if err != nil {
			return nil, err
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

// addresses reads an address or a prefix.
func addresses(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		return netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is neither an IP address nor a prefix such as 10.0.0.0/8", text)
	}
	const mapped = 96 // bits before an IPv4 address
	if address := prefix.Addr(); address.Is4In6() && prefix.Bits() >= mapped {
		prefix = netip.PrefixFrom(address.Unmap(), prefix.Bits()-mapped)
	}
	return prefix.Masked(), nil
}

// admit checks the rules that admit checkers.
func (c *checks) admit(rules []*configv1.AdmitRule) {
	for i, rule := range rules {
		prefix := fmt.Sprintf("checkers.admit[%d]", i)
		if rule.GetNodeIdGlob() == "" && len(rule.GetAddresses()) == 0 {
			c.add(prefix, "admits every checker: write node_id_glob, addresses or both, or remove admit")
		}
		if rule.GetNodeIdGlob() != "" {
			c.glob(prefix+".node_id_glob", rule.GetNodeIdGlob(), "checkers")
		}
		checkAddresses(rule.GetAddresses(), prefix+".addresses", c.add)
	}
}

// checkAddresses checks addresses and prefixes.
func checkAddresses(texts []string, field string, add func(field, format string, args ...any)) {
	for i, text := range texts {
		if _, err := addresses(text); err != nil {
			add(fmt.Sprintf("%s[%d]", field, i), "%v", err)
		}
	}
}
