package fleet

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// polling is the bootstrap of an Envoy that polls hdsd by REST: for the
// endpoints of web, or for clusters, whose endpoints then come over ADS.
func (c *Coordinator) polling(id, listen string, clusters bool) []byte {
	source := `{resource_api_version: V3, api_config_source: {api_type: REST, transport_api_version: V3, cluster_names: [rest], refresh_delay: 0.1s, request_timeout: 1s}}`
	server := func(name, address, more string) string {
		return fmt.Sprintf("  - {name: %s, type: STATIC, connect_timeout: 1s, %sload_assignment: {cluster_name: %s, endpoints: [{lb_endpoints: [%s]}]}}\n",
			name, more, name, endpointYAML(address))
	}
	host, port, _ := net.SplitHostPort(listen) // as it was chosen
	text := fmt.Sprintf("node: {id: %s, cluster: test}\nadmin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n", id)
	if clusters {
		text += "dynamic_resources:\n  cds_config: " + source +
			"\n  ads_config: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: ads}}]}\n"
	}
	text += "static_resources:\n  clusters:\n" + server("rest", c.HTTP, "") +
		server("ads", c.GRPC, `typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}, `)
	if !clusters {
		text += "  - {name: web, type: EDS, connect_timeout: 1s, eds_cluster_config: {eds_config: " + source + "}}\n"
	}
	return []byte(text + fmt.Sprintf(`  listeners:
  - name: traffic
    address: {socket_address: {address: %s, port_value: %s}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: traffic
          http_filters: [{name: envoy.filters.http.router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
          route_config: {validate_clusters: false, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: web}}]}]}
`, host, port))
}

// poll asks for the endpoints of web with a version, and returns the status and
// the version of the answer, if it has one.
func (c *Coordinator) poll(version string) (code int, told string) {
	c.t.Helper()
	body := fmt.Sprintf(`{"resource_names":["web"],"version_info":%q}`, version)
	response, err := http.Post("http://"+c.HTTP+"/v3/discovery:endpoints", "application/json", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if found := regexp.MustCompile(`"versionInfo":"([^"]*)"`).FindSubmatch(text); found != nil {
		told = string(found[1])
	}
	return response.StatusCode, told
}

// awaitPolls waits until Envoys that poll are shown as clients that have what
// there is.
func (c *Coordinator) awaitPolls(ids ...string) {
	c.t.Helper()
	envoy.Eventually(c.t, Patience, "those who poll to be shown", func() bool {
		var answer struct {
			Clients []struct {
				ID                string
				Resources, Synced int
				Poll              struct{ By, Given, Held string }
			}
		}
		c.ask("/v1/clients", &answer)
		polled := 0
		for _, k := range answer.Clients {
			if slices.Contains(ids, k.ID) && k.Poll.By == "REST" && k.Resources == 1 && k.Synced == 1 && k.Poll.Held == k.Poll.Given {
				polled++
			}
		}
		return polled == len(ids)
	})
	response, err := http.Post("http://"+c.HTTP+"/v3/discovery:client_status", "application/json", strings.NewReader(`{"exclude_resource_contents":true}`))
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, id := range ids {
		if !strings.Contains(string(text), fmt.Sprintf(`"clientScope":"%s/REST"`, id)) {
			c.t.Errorf("%s is not in CSDS: %s", id, text)
		}
	}
}

// TestEnvoysThatPoll has data planes without a stream for what they poll, over
// a flip and a restart of hdsd.
func TestEnvoysThatPoll(t *testing.T) {
	ups := Upstreams(t, 3, upstream.Options{})
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, Addresses(ups))), FastReports)
	c.Start()
	Checkers(t, c, 3)
	var planes []*envoy.Process
	for _, clusters := range []bool{false, true} {
		id, listen := fmt.Sprintf("polls-clusters-%t", clusters), envoy.FreeAddress(t)
		plane := envoy.Start(t, "", id, c.polling(id, listen, clusters))
		plane.Listen = listen
		planes = append(planes, plane)
	}
	c.AwaitAllHealthy("web", Addresses(ups), planes)
	c.awaitPolls(planes[0].ID, planes[1].ID)
	_, healthy := c.poll("")

	flip := func(with upstream.Behaviour, health string) {
		t.Helper()
		set(t, ups[1], with)
		for _, plane := range planes {
			AwaitPlane(t, plane, "web", ups[1].Addr(), health)
			if failed := Traffic(t, plane, 10); failed > 0 {
				t.Errorf("%d of 10 requests through %s failed", failed, plane.ID)
			}
		}
	}
	flip(upstream.Status(503), "UNHEALTHY")
	_, ill := c.poll(healthy)
	if ill == healthy || ill == "" {
		t.Errorf("version %q after the flip, %q before", ill, healthy)
	}
	envoy.Eventually(t, Patience, "the fall to be committed", func() bool {
		return slices.ContainsFunc(c.Transitions("web"), func(n Transition) bool { return n.To == "UNHEALTHY" })
	})
	c.Kill()
	c.Start()
	if code, told := c.poll(ill); code != http.StatusNotModified {
		t.Errorf("after a restart %d with version %q, before it was %q", code, told, ill)
	}
	flip(upstream.Healthy(), "HEALTHY")
	c.awaitPolls(planes[0].ID, planes[1].ID)
	if _, again := c.poll(""); again != healthy {
		t.Errorf("version %q, once it was %q", again, healthy)
	}
	for _, plane := range planes {
		for name, count := range plane.Stats(t, `^cluster(_manager\.cds|\.web)\.update_rejected$`) {
			if count > 0 {
				t.Errorf("%s: %s is %d", plane.ID, name, count)
			}
		}
	}
}
