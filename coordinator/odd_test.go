package coordinator_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// scripted is a checker that says what a script makes of its latest specifier,
// again and again.
type scripted struct {
	mu   sync.Mutex
	have *healthv3.HealthCheckSpecifier // guarded by mu
}

// says makes a report of a specifier; nil: none.
type says func(*healthv3.HealthCheckSpecifier) *healthv3.EndpointHealthResponse

type (
	request = healthv3.HealthCheckRequestOrEndpointHealthResponse
	opening = healthv3.HealthCheckRequestOrEndpointHealthResponse_HealthCheckRequest
	telling = healthv3.HealthCheckRequestOrEndpointHealthResponse_EndpointHealthResponse
)

// scripted connects a checker that reports each 20 ms until the test ends.
func (s *site) scripted(id string, script says) *scripted {
	s.t.Helper()
	connection, err := grpc.NewClient(s.GRPCAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.t.Fatal(err)
	}
	stream, err := healthv3.NewHealthDiscoveryServiceClient(connection).StreamHealthCheck(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := stream.Send(&request{RequestType: &opening{HealthCheckRequest: &healthv3.HealthCheckRequest{
		Node:       &corev3.Node{Id: id, Locality: &corev3.Locality{Zone: id}},
		Capability: &healthv3.Capability{HealthCheckProtocols: []healthv3.Capability_Protocol{healthv3.Capability_HTTP}},
	}}}); err != nil {
		s.t.Fatal(err)
	}
	k := &scripted{}
	done := make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() { k.listen(stream) })
	both.Go(func() { k.talk(stream, script, done) })
	s.t.Cleanup(func() { close(done); connection.Close(); both.Wait() })
	return k
}

func (k *scripted) listen(stream healthv3.HealthDiscoveryService_StreamHealthCheckClient) {
	for {
		got, err := stream.Recv()
		if err != nil {
			return
		}
		k.mu.Lock()
		k.have = got
		k.mu.Unlock()
	}
}

func (k *scripted) talk(stream healthv3.HealthDiscoveryService_StreamHealthCheckClient, script says, done chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		k.mu.Lock()
		have := k.have
		k.mu.Unlock()
		if have == nil {
			continue
		}
		said := script(have)
		if said == nil {
			continue
		}
		if stream.Send(&request{RequestType: &telling{EndpointHealthResponse: said}}) != nil {
			return
		}
	}
}

// flat reports without clusters and without codes, in the specifier's order;
// port gives the status.
func flat(status func(cluster string, port uint32) corev3.HealthStatus) says {
	return func(spec *healthv3.HealthCheckSpecifier) *healthv3.EndpointHealthResponse {
		said := &healthv3.EndpointHealthResponse{}
		for _, c := range spec.GetClusterHealthChecks() {
			for _, l := range c.GetLocalityEndpoints() {
				for _, e := range l.GetEndpoints() {
					//nolint:staticcheck // what old checkers send
					said.EndpointsHealth = append(said.EndpointsHealth, &healthv3.EndpointHealth{
						Endpoint: e, HealthStatus: status(c.GetClusterName(), e.GetAddress().GetSocketAddress().GetPortValue()),
					})
				}
			}
		}
		return said
	}
}

// upBelow1000 is what the checkers of these tests find.
func upBelow1000(_ string, port uint32) corev3.HealthStatus {
	if port < 1000 {
		return corev3.HealthStatus_HEALTHY
	}
	return corev3.HealthStatus_UNHEALTHY
}

const brisk = `
grpc: {address: "127.0.0.1:0"}
http: {address: "127.0.0.1:0"}
assignment: {settle: 0.05s, reconnect_grace: 0.3s}
reporting: {interval: 0.2s}
sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]
`

func TestFlatReportsWithoutCodes(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), brisk, static("web", "192.0.2.1:80", "192.0.2.2:8080")+static("db", "192.0.2.3:80"))
	s.ready()
	s.scripted("old", flat(upBelow1000))
	s.eventually("a verdict on each", func() bool {
		return s.healthOf("web", "192.0.2.1:80") == "HEALTHY" && s.healthOf("web", "192.0.2.2:8080") == "UNHEALTHY" && s.healthOf("db", "192.0.2.3:80") == "HEALTHY"
	})
	if _, text := s.get("/v1/endpoints"); strings.Contains(text, "httpStatusCode") {
		t.Errorf("a code that nobody reported: %s", text)
	}
	s.eventually("the checker to be shown as one that follows", func() bool { return s.checkerState("old").Specifier == "SYNCED" })
	if k := s.checkerState("old"); !k.Trusted || k.StrangeReports != "0" {
		t.Errorf("the checker is %+v", k)
	}
}

// TestFlatReportOfSharedAddress covers an address in two clusters: only the order of a flat report tells them
// apart.
func TestFlatReportOfSharedAddress(t *testing.T) {
	t.Parallel()
	const shared = "192.0.2.1:80"
	// Their checks differ: who reports out of order follows no trial, and tries both at once.
	clusters := static("down", shared, "192.0.2.2:80") + strings.ReplaceAll(static("up", shared, "192.0.2.3:80"), "/healthz", "/up")
	byCluster := func(cluster string, _ uint32) corev3.HealthStatus {
		if strings.HasPrefix(cluster, "down") {
			return corev3.HealthStatus_UNHEALTHY
		}
		return corev3.HealthStatus_HEALTHY
	}
	t.Run("in order", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, t.TempDir(), brisk, clusters)
		s.ready()
		s.scripted("old", flat(byCluster))
		s.eventually("each its own verdict", func() bool {
			return s.healthOf("down", shared) == "UNHEALTHY" && s.healthOf("up", shared) == "HEALTHY"
		})
	})
	t.Run("out of order", func(t *testing.T) {
		t.Parallel()
		// A trial that is not accepted soon is tried again alone, and then an address is of one cluster.
		s := newSite(t, t.TempDir(), strings.Replace(brisk, "interval: 0.2s", "interval: 2s", 1), clusters)
		s.ready()
		s.scripted("odd", func(spec *healthv3.HealthCheckSpecifier) *healthv3.EndpointHealthResponse {
			said := flat(byCluster)(spec)
			all := said.EndpointsHealth //nolint:staticcheck // what old checkers send
			for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
				all[i], all[j] = all[j], all[i]
			}
			return said
		})
		s.eventually("verdicts on what is unique", func() bool {
			return s.healthOf("down", "192.0.2.2:80") == "UNHEALTHY" && s.healthOf("up", "192.0.2.3:80") == "HEALTHY"
		})
		for _, cluster := range []string{"up", "down"} {
			if got := s.healthOf(cluster, shared); got != "UNKNOWN" {
				t.Errorf("%s %s is %s by a report that can mean either", cluster, shared, got)
			}
		}
		if k := s.checkerState("odd"); k.StrangeReports != "0" || k.Specifier == "SYNCED" { // never so, for long SENT, then NOT_SENT
			t.Errorf("the checker is %+v", k)
		}
	})
}

// checkerJSON is what REST says of a checker.
type checkerJSON struct {
	ID, Version, Specifier, DistrustReason, StrangeReports string
	Trusted                                                bool
	AssignedEndpoints                                      int
}

func (s *site) checkerState(id string) checkerJSON {
	code, text := s.get("/v1/checkers")
	var answer struct{ Checkers []checkerJSON }
	if code == http.StatusOK && json.Unmarshal([]byte(text), &answer) == nil {
		for _, k := range answer.Checkers {
			if k.ID == id {
				return k
			}
		}
	}
	return checkerJSON{}
}

// TestCheckerWithoutPlanIsNotSynced covers a checker with an empty specifier, while another checker tries the
// only cluster. Its reports follow the empty specifier.
func TestCheckerWithoutPlanIsNotSynced(t *testing.T) {
	t.Parallel()
	slow := strings.ReplaceAll(brisk, "interval: 0.2s", "interval: 60s")
	s := newSite(t, t.TempDir(), slow, static("web", "192.0.2.1:80", "192.0.2.2:80"))
	s.ready()
	silent := func(*healthv3.HealthCheckSpecifier) *healthv3.EndpointHealthResponse { return nil }
	s.scripted("canary", silent)
	s.eventually("it to try the cluster", func() bool {
		k := s.checkerState("canary")
		return k.AssignedEndpoints == 2 && k.Specifier == "SENT"
	})
	kept := s.scripted("kept", flat(upBelow1000))
	s.eventually("the other to report what it was sent", func() bool {
		_, text := s.get("/v1/checkers")
		return strings.Contains(text, `"lastReport"`)
	})
	kept.mu.Lock()
	if len(kept.have.GetClusterHealthChecks()) > 0 {
		t.Errorf("it was sent %v", kept.have)
	}
	kept.mu.Unlock()
	if got := s.checkerState("kept"); got.Specifier != "NOT_SENT" || got.AssignedEndpoints != 2 {
		t.Errorf("it is %+v", got)
	}
	for path, want := range map[string]string{
		"/v1/clients": `"id":"kept","kind":"checker","connected":true,"typeUrl":"` + specifierURL + `","resources":1,"synced":0,"stale":1`,
		"/v3/discovery:client_status?node_id=kept": `"configStatus":"NOT_SENT","clientStatus":"ACKED"`,
	} {
		if _, text := s.get(path); !strings.Contains(strings.Join(strings.Fields(text), ""), want) {
			t.Errorf("%s says %s", path, text)
		}
	}
}

const specifierURL = "type.googleapis.com/envoy.service.health.v3.HealthCheckSpecifier"

func TestSilentCheckerIsShown(t *testing.T) {
	t.Parallel()
	var addresses []string
	for _, host := range []string{"1", "2", "3", "4", "5", "6"} {
		addresses = append(addresses, "192.0.2."+host+":80")
	}
	s := newSite(t, t.TempDir(), brisk+"policies: [{cluster_name_glob: \"*\", redundancy: 1}]\n", static("web", addresses...))
	s.ready()
	s.scripted("good", flat(upBelow1000))
	s.eventually("a verdict", func() bool { return s.healthOf("web", addresses[0]) == "HEALTHY" })
	silent := s.scripted("silent", func(*healthv3.HealthCheckSpecifier) *healthv3.EndpointHealthResponse { return nil })
	s.eventually("it to get work", func() bool { return s.checkerState("silent").AssignedEndpoints > 0 })
	s.eventually("it to be found out", func() bool { return !s.checkerState("silent").Trusted })
	s.eventually("its endpoints to move", func() bool {
		return s.checkerState("silent").AssignedEndpoints == 0 && s.checkerState("good").AssignedEndpoints == len(addresses)
	})
	for _, want := range []string{"within 1s", "others check its endpoints"} {
		if k := s.checkerState("silent"); !strings.Contains(k.DistrustReason, want) {
			t.Errorf("it is distrusted because %q, want %q", k.DistrustReason, want)
		}
	}
	silent.mu.Lock()
	defer silent.mu.Unlock()
	if len(silent.have.GetClusterHealthChecks()) == 0 {
		t.Error("it was sent an empty specifier, which would wake it")
	}
}

// TestStoppedCheckerIsShown covers a checker that stops reporting on an open stream.
func TestStoppedCheckerIsShown(t *testing.T) {
	t.Parallel()
	addresses := []string{"192.0.2.1:80", "192.0.2.2:80", "192.0.2.3:80", "192.0.2.4:80"}
	s := newSite(t, t.TempDir(), brisk+"policies: [{cluster_name_glob: \"*\", redundancy: 1}]\n", static("web", addresses...))
	s.ready()
	s.scripted("good", flat(upBelow1000))
	var stops atomic.Bool
	says := flat(upBelow1000)
	s.scripted("stops", func(spec *healthv3.HealthCheckSpecifier) *healthv3.EndpointHealthResponse {
		if stops.Load() {
			return nil
		}
		return says(spec)
	})
	s.eventually("both to work", func() bool {
		k := s.checkerState("stops")
		return k.AssignedEndpoints > 0 && k.Specifier == "SYNCED" && k.Trusted
	})
	stops.Store(true)
	s.eventually("its endpoints to move", func() bool {
		return s.checkerState("good").AssignedEndpoints == len(addresses) && s.checkerState("stops").AssignedEndpoints == 0
	})
	if k := s.checkerState("stops"); k.Trusted || !strings.Contains(k.DistrustReason, "it has stopped reporting; others check its endpoints") {
		t.Errorf("it is shown as %+v", k)
	}
	if _, text := s.get("/v1/status"); !strings.Contains(text, `"silent":1`) || !strings.Contains(text, "CHECKER_SILENT") {
		t.Errorf("the status is %s", text)
	}
	stops.Store(false)
	s.eventually("it to work again", func() bool { return s.checkerState("stops").Trusted && s.checkerState("stops").AssignedEndpoints > 0 })
}

// TestOnlyCheckerIsTriedAgain covers a checker that follows its first specifier too late: the specifier is
// empty meanwhile, and so are its reports.
func TestOnlyCheckerIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), brisk, static("web", "192.0.2.1:80"))
	s.ready()
	follow, loaded, emptied := flat(upBelow1000), false, false
	s.scripted("late", func(spec *healthv3.HealthCheckSpecifier) *healthv3.EndpointHealthResponse {
		loaded = loaded || len(spec.GetClusterHealthChecks()) > 0
		emptied = emptied || loaded && len(spec.GetClusterHealthChecks()) == 0
		if loaded && !emptied {
			return nil
		}
		return follow(spec)
	})
	s.eventually("a verdict", func() bool { return s.healthOf("web", "192.0.2.1:80") == "HEALTHY" })
	s.eventually("it to be trusted", func() bool { return s.checkerState("late").Trusted })
}
