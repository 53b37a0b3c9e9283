package fleet

import (
	"fmt"
	"path/filepath"
	"testing"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// way is how an Envoy gets the endpoints of a cluster that is called so.
type way struct{ name, source string }

// api is a configuration source of Envoy that asks hdsd.
func api(kind, more string) string {
	return fmt.Sprintf("{resource_api_version: V3, api_config_source: {api_type: %s, transport_api_version: V3, %s}}", kind, more)
}

const grpcServer = "grpc_services: [{envoy_grpc: {cluster_name: grpc}}]"

// taking is the bootstrap of an Envoy with an EDS cluster for each of some ways
// to the endpoints of web.
func (c *Coordinator) taking(id, adsKind string, ways []way) []byte {
	server := func(name, address, more string) string {
		return fmt.Sprintf("  - {name: %s, type: STATIC, connect_timeout: 1s, %sload_assignment: {cluster_name: %s, endpoints: [{lb_endpoints: [%s]}]}}\n",
			name, more, name, endpointYAML(address))
	}
	text := fmt.Sprintf(`node: {id: %s, cluster: test}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  ads_config: {api_type: %s, transport_api_version: V3, %s}
static_resources:
  clusters:
`, id, adsKind, grpcServer)
	text += server("rest", c.HTTP, "") + server("grpc", c.GRPC, `typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}, `)
	for _, w := range ways {
		text += fmt.Sprintf("  - {name: %s, type: EDS, connect_timeout: 1s, eds_cluster_config: {service_name: web, eds_config: %s}}\n", w.name, w.source)
	}
	return []byte(text)
}

// TestEnvoysTakeHealthEachWay: two releases, over ADS and the endpoint service,
// each as state of the world and delta, by polling, and from a file.
func TestEnvoysTakeHealthEachWay(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 3, upstream.Options{})
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, Addresses(ups))), FastReports+"data_planes: {eds_directory: eds}\n")
	c.Start()
	Checkers(t, c, 3)
	c.AwaitAllHealthy("web", Addresses(ups), nil)
	file := filepath.Join(c.Dir, "eds", "web.pb")
	states := []way{
		{"ads", "{resource_api_version: V3, ads: {}}"},
		{"grpc-eds", api("GRPC", grpcServer)},
		{"delta-eds", api("DELTA_GRPC", grpcServer)},
		{"rest-eds", api("REST", "cluster_names: [rest], refresh_delay: 0.1s, request_timeout: 1s")},
		{"file", fmt.Sprintf("{resource_api_version: V3, path_config_source: {path: %s}}", file)},
		{"file-in-watched-folder", fmt.Sprintf("{resource_api_version: V3, path_config_source: {path: %s, watched_directory: {path: %s}}}", file, filepath.Dir(file))},
	}
	type taker struct {
		*envoy.Process
		ways []way
	}
	var takers []taker
	for _, version := range []string{"1.36.4", "1.40.0"} {
		id := "takes-" + version
		takers = append(takers,
			taker{envoy.Start(t, version, id, c.taking(id, "GRPC", states)), states},
			taker{envoy.Start(t, version, id+"-delta", c.taking(id+"-delta", "DELTA_GRPC", states[:1])), states[:1]})
	}
	want := func(address, health string) {
		t.Helper()
		for _, k := range takers {
			for _, w := range k.ways {
				AwaitPlane(t, k.Process, w.name, address, health)
			}
		}
	}
	for _, address := range Addresses(ups) {
		want(address, "HEALTHY")
	}
	set(t, ups[1], upstream.Status(503))
	want(ups[1].Addr(), "UNHEALTHY")
	want(ups[0].Addr(), "HEALTHY")
	c.Kill()
	set(t, ups[2], upstream.Status(503))
	c.Start()
	want(ups[2].Addr(), "UNHEALTHY")
	set(t, ups[1], upstream.Healthy())
	want(ups[1].Addr(), "HEALTHY")
	for _, k := range takers {
		for name, count := range k.Stats(t, `^cluster\..*\.update_rejected$`) {
			if count > 0 {
				t.Errorf("%s: %s is %d", k.ID, name, count)
			}
		}
	}
}
