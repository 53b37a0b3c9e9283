package config

import (
	"fmt"
	"net/netip"
)

const dnsPort = 53

// Resolvers returns the addresses of the configured DNS servers, with their ports; none
// stands for the system's.
func Resolvers(c *Config) []string {
	var list []string
	for _, text := range c.GetDns().GetResolvers() {
		if address, ok := resolver(text); ok {
			list = append(list, address.String())
		}
	}
	return list
}

// resolver reads IP:PORT, or an IP address alone.
func resolver(text string) (netip.AddrPort, bool) {
	if address, err := netip.ParseAddrPort(text); err == nil {
		return address, address.Port() != 0
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
