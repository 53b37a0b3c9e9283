package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// byCDS is the bootstrap of an Envoy that takes clusters from hdsd, listeners over
// hdsd's ADS or nothing, and has its ADS at another address.
func (c *Coordinator) byCDS(id, ads, listeners string) []byte {
	server := func(name, address string) string {
		return fmt.Sprintf(`  - {name: %s, type: STATIC, connect_timeout: 1s, load_assignment: {cluster_name: %s, endpoints: [{lb_endpoints: [%s]}]},
     typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}}
`, name, name, endpointYAML(address))
	}
	return []byte(fmt.Sprintf(`node: {id: %s, cluster: test}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  ads_config: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: ads}}]}
  cds_config: %s
%sstatic_resources:
  clusters:
`, id, api("DELTA_GRPC", grpcServer), listeners) + server("grpc", c.GRPC) + server("ads", ads))
}

// clients returns the rows of hdsd clients of a node, by type.
func (c *Coordinator) clients(t *testing.T, id string) map[string]clientRow {
	t.Helper()
	out, err := exec.Command(c.Binary, "clients", "--server", c.GRPC, "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]clientRow{}
	for line := range bytes.Lines(out) {
		var row clientRow
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		if row.ID == id {
			rows[row.TypeURL[strings.LastIndexByte(row.TypeURL, '.')+1:]] = row
		}
	}
	return rows
}

type clientRow struct {
	ID, TypeURL, LastError string
	Synced, Unasked        int
}

// TestClustersFromHereEndpointsFromElsewhere: an Envoy whose clusters come from hdsd
// and whose ADS is another server has no health, which is shown; with the source of
// endpoints configured it has. One that asks hdsd for listeners is told of, too.
func TestClustersFromHereEndpointsFromElsewhere(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 2, upstream.Options{})
	other := startManager(t, "web")
	other.publish(Addresses(ups), nil)
	site := func(extra string) *Coordinator {
		c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, Addresses(ups))), FastReports+extra)
		c.Start()
		Checkers(t, c, 3)
		c.AwaitAllHealthy("web", Addresses(ups), nil)
		return c
	}
	blind := site("")
	sees := site("data_planes: {eds_config_source: {api_config_source: {api_type: DELTA_GRPC, " + grpcServer + "}}}\n")
	lost := envoy.Start(t, "", "lost", blind.byCDS("lost", other.grpc, ""))
	kept := envoy.Start(t, "", "kept", sees.byCDS("kept", other.grpc, ""))
	envoy.Start(t, "", "waits", blind.byCDS("waits", blind.GRPC, "  lds_config: {resource_api_version: V3, ads: {}}\n"))

	set(t, ups[0], upstream.Status(503))
	AwaitPlane(t, kept, "web", ups[0].Addr(), "UNHEALTHY")
	AwaitPlane(t, kept, "web", ups[1].Addr(), "HEALTHY")
	envoy.Eventually(t, Patience, "what is not served to be shown", func() bool {
		return strings.Contains(blind.clients(t, "waits")["Listener"].LastError, "lds_config")
	})
	envoy.Eventually(t, 2*Patience, "who has no health to be shown", func() bool {
		return blind.clients(t, "lost")["Cluster"].Unasked == 1
	})
	if got := lost.Clusters(t)["web"][ups[0].Addr()].EDSHealth; got == "UNHEALTHY" {
		t.Error("the Envoy whose ADS is another server knows what hdsd knows")
	}
	if row := sees.clients(t, "kept")["Cluster"]; row.Unasked != 0 || row.Synced != 1 {
		t.Errorf("the Envoy that asks hdsd is shown as %+v", row)
	}
	if row := blind.clients(t, "waits")["Cluster"]; row.Unasked != 0 {
		t.Errorf("the Envoy whose ADS is hdsd is shown as %+v", row)
	}
	for event, want := range map[string]int{`"event":"assignments_not_asked","node":"lost"`: 1, `"event":"xds_type_not_served","node":"waits"`: 1, `"event":"assignments_not_asked"`: 1} {
		if got := strings.Count(blind.logs.String(), event); got != want {
			t.Errorf("%d lines with %s, want %d", got, event, want)
		}
	}
}
