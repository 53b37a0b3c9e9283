package validate_test

import (
	"strings"
	"testing"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// TestEndpointsWithIPv6AreNoted, since hdsd cannot tell whether checkers have it: unless a policy
// says which checkers reach the cluster.
func TestEndpointsWithIPv6AreNoted(t *testing.T) {
	reached := &configv1.Policy{ClusterNameGlob: "web", Checkers: &configv1.CheckerSelector{Metadata: map[string]string{"ipv6": "true"}}}
	for _, c := range []struct {
		address  string
		policies []*configv1.Policy
		want     int
	}{{"127.0.0.1", nil, 0}, {"'2001:db8::1'", nil, 1}, {"'2001:db8::1'", []*configv1.Policy{reached}, 0}} {
		found := examineWith(t, strings.ReplaceAll(cluster("", ""), "127.0.0.1", c.address), c.policies...)
		if len(found.Notes) != c.want || c.want == 1 && !strings.HasPrefix(found.Notes[0], "clusters with IPv6 endpoints: 1; ") || len(found.Problems) > 0 {
			t.Errorf("%s, %v: the notes are %q, the problems %v", c.address, c.policies, found.Notes, found.Problems)
		}
	}
}
