package fleet

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// TestEnvoysWithStreamsOfTheirOwnHaveTheirVersion: real Envoys that take clusters and endpoints on two
// streams, without ADS, have one cluster with different checks. Each gets the verdicts of its own.
func TestEnvoysWithStreamsOfTheirOwnHaveTheirVersion(t *testing.T) {
	t.Parallel()
	p, c := Relay(t)
	server := Upstreams(t, 1, upstream.Options{})[0]
	address := server.Addr()
	var status, ports []*envoy.Process // by what they check
	for form, kind := range map[string]string{"delta": "DELTA_GRPC", "state": "GRPC"} {
		api := fmt.Sprintf(`{"api_type": %q, "transport_api_version": "V3", "grpc_services": [{"envoy_grpc": {"cluster_name": "ads"}}]}`, kind)
		for check, planes := range map[string]*[]*envoy.Process{`"http_health_check": {"path": "/healthz"}`: &status, `"tcp_health_check": {}`: &ports} {
			name := fmt.Sprintf("%s-%.6s", form, check[1:])
			p.SayClusters(name, []types.Resource{p.checkedBy(check, `"api_config_source": `+api)}, []types.Resource{assignmentOf([]string{address})})
			text := string(Bootstrap(t, name, c.GRPC, false))
			start, end := strings.Index(text, `"ads_config"`), strings.Index(text, `"static_resources"`)
			text = text[:start] + fmt.Sprintf(`"cds_config": {"resource_api_version": "V3", "api_config_source": %s}}, `, api) + text[end:]
			*planes = append(*planes, envoy.Start(t, "1.40.0", name, []byte(text)))
		}
	}
	wait := func(planes []*envoy.Process, health string) {
		t.Helper()
		for _, plane := range planes {
			AwaitPlane(t, plane, "web", address, health)
		}
	}
	wait(status, "HEALTHY")
	wait(ports, "HEALTHY")
	for _, step := range []struct {
		to     upstream.Behaviour
		status string
	}{{upstream.Status(503), "UNHEALTHY"}, {upstream.Healthy(), "HEALTHY"}, {upstream.Status(503), "UNHEALTHY"}} {
		server.Set(step.to)
		wait(status, step.status)
		wait(ports, "HEALTHY")
	}
	for _, command := range []string{"clusters", "endpoints", "history"} {
		if out := c.Operate(command); !strings.Contains(out, "VERSION") || strings.Contains(out, "web#") {
			t.Errorf("hdsd %s shows\n%s", command, out)
		}
	}
	c.wantSpecified(t, "web", c.version("web"))
}

// version is hdsd's own name for the second version of a cluster.
func (c *Coordinator) version(cluster string) string {
	for name := range c.Clusters() {
		if strings.HasPrefix(name, cluster+"#") {
			return name
		}
	}
	c.t.Fatalf("%s has one version", cluster)
	return ""
}

// wantSpecified wants client status to have, over gRPC and REST, checkers with these clusters, and no data
// plane of the relay.
func (c *Coordinator) wantSpecified(t *testing.T, clusters ...string) {
	t.Helper()
	connection, err := grpc.NewClient(c.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	direct, err := statusv3.NewClientStatusDiscoveryServiceClient(connection).FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	asked, err := http.Post("http://"+c.HTTP+"/v3/discovery:client_status", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Body.Close()
	text, err := io.ReadAll(asked.Body)
	if err != nil {
		t.Fatal(err)
	}
	over, err := protojson.Marshal(direct)
	if err != nil {
		t.Fatal(err)
	}
	for way, answer := range map[string]string{"gRPC": string(over), "REST": string(text)} {
		answer = strings.Join(strings.Fields(answer), "")
		for _, cluster := range clusters {
			if !strings.Contains(answer, fmt.Sprintf(`"clusterName":%q`, cluster)) {
				t.Errorf("over %s, no checker has %s: %s", way, cluster, answer)
			}
		}
		if strings.Contains(answer, "delta-") || strings.Contains(answer, "state-") {
			t.Errorf("over %s, data planes of the relay are shown", way)
		}
	}
}
