package config

import (
	"fmt"
	"net/netip"
)

const dnsPort = 53

// Resolvers returns the addresses of the configured DNS servers, with their ports; none
// stands for the system's.
func Resolvers(c *Config) []string {
	var all []string
	for _, text := range c.GetDns().GetResolvers() {
		if at, ok := resolver(text); ok {
			all = append(all, at.String())
		}
	}
	return all
}

// resolver reads IP:PORT, or an IP address alone.
func resolver(text string) (netip.AddrPort, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at, at.Port() != 0
	}
	address, err := netip.ParseAddr(text)
	return netip.AddrPortFrom(address, dnsPort), err == nil
}

func (c *checks) dns(cfg *Config) {
	for i, text := range cfg.GetDns().GetResolvers() {
		if _, ok := resolver(text); !ok {
			c.add(fmt.Sprintf("dns.resolvers[%d]", i), "%q is not the address of a DNS server: write an IP address with or without a port, such as 10.0.0.2:53", text)
		}
	}
}
