package config

import (
	"fmt"
	"net/netip"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// Prefixes reads addresses and prefixes.
func Prefixes(texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range texts {
		prefix, err := addresses(text)
		if err != nil {
			return nil, err
		}
		all = append(all, prefix)
	}
	return all, nil
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
	return prefix.Masked(), nil
}

// admit checks the rules that admit checkers.
func (c *checks) admit(rules []*configv1.AdmitRule) {
	for i, rule := range rules {
		at := fmt.Sprintf("checkers.admit[%d]", i)
		if rule.GetNodeIdGlob() == "" && len(rule.GetAddresses()) == 0 {
			c.add(at, "admits every checker: write node_id_glob, addresses or both, or remove admit")
		}
		if rule.GetNodeIdGlob() != "" {
			c.glob(at+".node_id_glob", rule.GetNodeIdGlob(), "checkers")
		}
		checkAddresses(rule.GetAddresses(), at+".addresses", c.add)
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
