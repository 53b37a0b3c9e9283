package fleet

import (
	"fmt"
	"net"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/internal/envoytypes"
	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// TestEnvoysTakeAnAuthority: an Envoy whose bootstrap names hdsd for an authority
// (config_sources) takes the endpoints with xdstp names of it from there.
func TestEnvoysTakeAnAuthority(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.38.3", "1.40.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			ups := Upstreams(t, 2, upstream.Options{})
			c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, Addresses(ups))), FastReports+"data_planes: {xdstp_authority: hdsd}\n")
			c.Start()
			Checkers(t, c, 3)
			plane := envoy.Start(t, version, version, authorityBootstrap(t, version, c.GRPC))
			for _, address := range Addresses(ups) {
				AwaitPlane(t, plane, "shop", address, "HEALTHY")
			}
			set(t, ups[1], upstream.Status(503))
			AwaitPlane(t, plane, "shop", ups[1].Addr(), "UNHEALTHY")
		})
	}
}

// TestEnvoysTakeClustersOfAnAuthority: Envoy asks for a cluster with an xdstp name when the
// first request is routed to it (the HTTP filter on_demand), and for its endpoints after that.
func TestEnvoysTakeClustersOfAnAuthority(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.38.3", "1.40.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			ups := Upstreams(t, 2, upstream.Options{})
			c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, Addresses(ups))), FastReports+"data_planes: {xdstp_authority: hdsd}\n")
			c.Start()
			Checkers(t, c, 3)
			front := envoy.FreeAddress(t)
			plane := envoy.Start(t, version, version, onDemandBootstrap(t, version, c.GRPC, front))
			plane.Listen = front
			envoy.Eventually(t, Patience, "an answer", func() bool { return Traffic(t, plane, 1) == 0 })
			for _, address := range Addresses(ups) {
				AwaitPlane(t, plane, webOfAuthority, address, "HEALTHY")
			}
			set(t, ups[1], upstream.Status(503))
			AwaitPlane(t, plane, webOfAuthority, ups[1].Addr(), "UNHEALTHY")
			if failed := Traffic(t, plane, 20); failed > 0 {
				t.Errorf("%d of 20 calls failed", failed)
			}
		})
	}
}

const webOfAuthority = "xdstp://hdsd/envoy.config.cluster.v3.Cluster/web"

// onDemandBootstrap has a listener that routes everything to a cluster with an xdstp name.
func onDemandBootstrap(t testing.TB, id, hdsd, front string) []byte {
	t.Helper()
	host, port, _ := net.SplitHostPort(front)
	listener := fmt.Sprintf(`"listeners": [{"name": "front", "address": {"socket_address": {"address": %q, "port_value": %s}}, "filter_chains": [{"filters": [{
		"name": "http", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "front",
		"route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": %q}}]}], "validate_clusters": false},
		"http_filters": [
			{"name": "on_demand", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.on_demand.v3.OnDemand", "odcds": {}}},
			{"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}]}]}], `, host, port, webOfAuthority)
	text := string(authorityBootstrap(t, id, hdsd))
	return decoded(t, strings.Replace(text, `"clusters": [`, listener+`"clusters": [`, 1))
}

// decoded returns a bootstrap that Envoy can decode.
func decoded(t testing.TB, text string) []byte {
	t.Helper()
	envoytypes.Register() // the text has filters
	if err := protojson.Unmarshal([]byte(text), &bootstrapv3.Bootstrap{}); err != nil {
		t.Fatal(fmt.Errorf("%w\n%s", err, text))
	}
	return []byte(text)
}

// authorityBootstrap has a static cluster "shop" whose endpoints hdsd has under an xdstp name.
func authorityBootstrap(t testing.TB, id, hdsd string) []byte {
	t.Helper()
	text := string(Bootstrap(t, id, hdsd, true))
	at := strings.Index(text, `"dynamic_resources"`)
	end := strings.Index(text, `"static_resources"`)
	text = text[:at] + `"config_sources": [{"authorities": [{"name": "hdsd"}], "resource_api_version": "V3",
		"api_config_source": {"api_type": "AGGREGATED_DELTA_GRPC", "transport_api_version": "V3", "grpc_services": [{"envoy_grpc": {"cluster_name": "ads"}}]}}],
		"layered_runtime": {"layers": [{"name": "static", "static_layer": {"envoy.reloadable_features.xdstp_based_config_singleton_subscriptions": true}}]}, ` + text[end:]
	text = strings.Replace(text, `"clusters": [`, `"clusters": [{"name": "shop", "type": "EDS", "connect_timeout": "1s",
		"eds_cluster_config": {"service_name": "xdstp://hdsd/envoy.config.endpoint.v3.ClusterLoadAssignment/web"}}, `, 1)
	return decoded(t, text)
}
