package config_test

import (
	"net/netip"
	"slices"
	"testing"

	"hdsd/config"
)

// TestMappedPrefixesAreThoseOfIPv4, as all addresses that they are held against are.
func TestMappedPrefixesAreThoseOfIPv4(t *testing.T) {
	got, err := config.Prefixes([]string{"::ffff:169.254.0.0/112", "::ffff:10.0.0.1", "::ffff:10.0.0.1/128", "2001:db8::/32", "10.1.2.3/8"})
	want := []netip.Prefix{
		netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.1/32"),
		netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("10.0.0.0/8"),
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v", got, err)
	}
}
