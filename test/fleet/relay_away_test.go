package fleet

import (
	"slices"
	"testing"
	"time"

	"hdsd/test/envoy"
	"hdsd/test/proxyless"
	"hdsd/test/upstream"
)

// TestARunningEnvoyLosesTheRelay: although its bootstrap names the control plane as the second
// server, an Envoy that has had an answer of hdsd stays with it, as docs/guides/relay.md says. It
// keeps what it has, and takes up when hdsd is back.
func TestARunningEnvoyLosesTheRelay(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.36.4", "1.40.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p, c := Relay(t)
			servers := Upstreams(t, 2, upstream.Options{})
			front := Front{Plain: envoy.FreeAddress(t), TLS: envoy.FreeAddress(t)}
			p.Say(version, front, servers[0].Addr())
			plane := envoy.Start(t, version, version, FailoverBootstrap(t, version, c.GRPC, p.Address, true))
			plane.Listen = front.Plain
			front.serves(t)
			c.AwaitHealth("web", servers[0].Addr(), "HEALTHY")
			c.Kill()
			p.Say(version, front, servers[1].Addr())
			if envoy.Await(5*time.Second, func() bool { return plane.Clusters(t)["web"][servers[1].Addr()].EDSHealth != "" }) {
				t.Error("it turned to the second server: correct docs/guides/relay.md")
			}
			if failed := Traffic(t, plane, 20); failed > 0 {
				t.Errorf("%d of 20 calls failed while hdsd was away", failed)
			}
			c.Start()
			AwaitPlane(t, plane, "web", servers[1].Addr(), "HEALTHY")
			servers[1].Set(upstream.Status(503))
			AwaitPlane(t, plane, "web", servers[1].Addr(), "UNHEALTHY")
		})
	}
}

// TestGRPCLosesTheRelay: gRPC's own xDS client keeps what it has while hdsd is away, no call
// fails, and it takes up health again when hdsd is back.
func TestGRPCLosesTheRelay(t *testing.T) {
	t.Parallel()
	p, c := Relay(t)
	one, other := proxyless.NewBackend(t), proxyless.NewBackend(t)
	p.SayGRPC("shop", one.Address, other.Address)
	client := proxyless.NewClient(t, "xds:///shop", proxyless.Bootstrap{Node: proxyless.Node{ID: "shop"}, Servers: []proxyless.Server{{Address: c.GRPC}}})
	reaches := func(when string, want ...bool) {
		t.Helper()
		envoy.Eventually(t, Patience, when, func() bool { return slices.Equal(client.Reach(one, other), want) })
	}
	reaches("calls at both", true, true)
	c.AwaitHealth("web", other.Address, "HEALTHY")
	one.Fail()
	reaches("calls at the other one only", false, true)
	c.Kill()
	for range 5 {
		reaches("calls at the other one while hdsd is away", false, true)
	}
	one.Recover()
	c.Start()
	reaches("calls at both after hdsd is back", true, true)
	other.Fail()
	reaches("calls at the first one only", true, false)
}
