package browser

import (
	"strings"
	"testing"

	"hdsd/test/envoy"
	"hdsd/test/fleet"
	"hdsd/test/upstream"
)

// TestVersionsOfAClusterAreNamedAsUsersKnowThem: behind the relay, two data planes have one cluster with
// different checks. The page has a row for each version of an endpoint, and never hdsd's own name; nor
// has what operators set.
func TestVersionsOfAClusterAreNamedAsUsersKnowThem(t *testing.T) {
	p := fleet.NewControlPlane(t)
	p.Come()
	c := fleet.Prepare(t, "resources: []\n", "")
	c.RelayTo(p.Address, "")
	c.Start()
	fleet.Checkers(t, c, 1)
	server := fleet.Upstreams(t, 1, upstream.Options{})[0]
	for name, check := range map[string]string{"dp-http": `"http_health_check": {"path": "/healthz"}`, "dp-tcp": `"tcp_health_check": {}`} {
		p.SayChecked(name, check, server.Addr())
		fleet.AwaitPlane(t, envoy.Start(t, "1.40.0", name, fleet.Bootstrap(t, name, c.GRPC, true)), "web", server.Addr(), "HEALTHY")
	}
	version := ""
	envoy.Eventually(t, fleet.Patience, "two versions of the cluster", func() bool {
		for name := range c.Clusters() {
			if strings.HasPrefix(name, "web#") {
				version = strings.TrimPrefix(name, "web#")
			}
		}
		return version != ""
	})
	b := open(t, c.HTTP, "/")
	b.shows("web (version "+version+")", true)
	b.shows("web#", false)
	b.behaved()
	b = open(t, c.HTTP, "/#/clusters/web")
	b.shows("2 of 2 endpoints", true)
	b.shows("version "+version, true)
	b.behaved()
	b = open(t, c.HTTP, "/#/clusters/web%23"+version)
	b.shows("web (version "+version+")", true)
	b.shows("1 of 1 endpoints", true)
	b.press("Override the health of web (version " + version + ")")
	b.fill("reason", "new kernel")
	b.fill("author", "ann")
	b.press("Show what it does")
	b.shows("It sets 1 endpoint of 2 to DRAINING. In cluster web (version "+version+"): Envoy would send traffic to the only endpoint", true)
	b.press("Override")
	b.visit("#/clients")
	b.shows("web (version "+version+")", true)
	b.shows("web#", false)
	b.press("Clear the override of web (version " + version + ")")
	b.press("Clear")
	b.shows("No overrides are in force.", true)
	b.behaved()
}
