package fleet

import (
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

const relayedCheck = `"connect_timeout": "1s", "health_checks": [{"timeout": "1s", "interval": "0.25s", "unhealthy_threshold": 2, "healthy_threshold": 1, "http_health_check": {"path": "/healthz"}}]`

// listed is a checked cluster that lists an endpoint, with one more field.
func (p *ControlPlane) listed(name, address, more string) types.Resource {
	list := assignmentOf([]string{address})
	list.ClusterName = name
	text, err := protojson.Marshal(list)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.parse(&clusterv3.Cluster{}, fmt.Sprintf(`{"name": %q, "type": "STATIC", %s, "load_assignment": %s, %s}`, name, relayedCheck, text, more))
}

// TestAnEnvoyThatRefusesAClusterTakesTheOthers: a real Envoy takes the good clusters of a response that it
// refuses. hdsd checks them, new ones too, its flips reach the Envoy, and none of them is taken away
// or replaced by an older version.
func TestAnEnvoyThatRefusesAClusterTakesTheOthers(t *testing.T) {
	t.Parallel()
	p, c := Relay(t)
	for name, delta := range map[string]bool{"refuses-delta": true, "refuses-state": false} {
		server := Upstreams(t, 1, upstream.Options{})[0]
		address := server.Addr()
		say := func(limit string, more ...types.Resource) {
			limit = `"per_connection_buffer_limit_bytes": ` + limit
			p.SayClusters(name, append(more, p.listed("web", address, limit)), nil)
		}
		say("10001")
		plane := envoy.Start(t, "1.40.0", name, Bootstrap(t, name, c.GRPC, delta))
		AwaitPlane(t, plane, "web", address, "HEALTHY")

		bad := p.listed("bad", address, `"transport_socket": {"name": "no.such.socket", "typed_config": {"@type": "type.googleapis.com/google.protobuf.Struct", "value": {}}}`)
		say("10002", bad, p.listed("new", address, `"alt_stat_name": "new"`))
		envoy.Eventually(t, Patience, "the control plane to hear of the refusal", func() bool { return p.Refused(resource.ClusterType, "no.such.socket") })
		for _, step := range []struct {
			to     upstream.Behaviour
			health string
		}{{upstream.Status(503), "UNHEALTHY"}, {upstream.Healthy(), "HEALTHY"}, {upstream.Status(503), "UNHEALTHY"}} {
			server.Set(step.to)
			for _, cluster := range []string{"web", "new"} {
				c.AwaitHealth(cluster, address, step.health)
				AwaitPlane(t, plane, cluster, address, step.health)
			}
			active, err := plane.Get("/config_dump?resource=dynamic_active_clusters")
			if err != nil || !strings.Contains(string(active), `"per_connection_buffer_limit_bytes": 10002`) {
				t.Errorf("%s: once it is %s, the newer version of web is gone (%v)", name, step.health, err)
			}
		}
		if removed := plane.Stats(t, "cluster_manager.cluster_removed")["cluster_manager.cluster_removed"]; removed != 0 {
			t.Errorf("%s: %d clusters were removed", name, removed)
		}
		plane.Kill()
	}
}

// TestLeavingTheRelay: with relay.health OFF, a real Envoy uses its clusters with their own health checks
// at once, where it would wait for their endpoints for ever.
func TestLeavingTheRelay(t *testing.T) {
	t.Parallel()
	p, c := Relay(t)
	server := Upstreams(t, 1, upstream.Options{})[0]
	address := server.Addr()
	cluster := p.parse(&clusterv3.Cluster{}, fmt.Sprintf(`{"name": "web", "type": "EDS", %s,
		"eds_cluster_config": {"eds_config": {"ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "0s"}}}`, relayedCheck))
	var planes []*envoy.Process
	for name, delta := range map[string]bool{"leaves-delta": true, "leaves-state": false} {
		p.SayClusters(name, []types.Resource{cluster}, []types.Resource{assignmentOf([]string{address})})
		planes = append(planes, envoy.Start(t, "1.40.0", name, Bootstrap(t, name, c.GRPC, delta)))
	}
	for _, plane := range planes {
		AwaitPlane(t, plane, "web", address, "HEALTHY")
		envoy.Eventually(t, Patience, plane.ID+" to have no health checks of its own", func() bool { return !has(plane) })
	}
	c.reload("relay: {", "relay: {health: OFF, ")
	for _, plane := range planes {
		envoy.Eventually(t, Patience, plane.ID+" to check by itself", func() bool { return has(plane) })
	}
}
