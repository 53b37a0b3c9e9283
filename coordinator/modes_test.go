package coordinator_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// plane is a data plane that takes all clusters and assignments by delta ADS.
type plane struct {
	s *site

	mu          sync.Mutex
	clusters    map[string]*clusterv3.Cluster
	assignments map[string]*endpointv3.ClusterLoadAssignment
	sent        map[string]int // resources, by name
	removed     int
	look        func(*endpointv3.ClusterLoadAssignment) // at each assignment that comes; nil: nobody does
}

// Of what it knows already, it says so.
func (s *site) plane(knows ...string) *plane {
	s.t.Helper()
	versions := map[string]string{}
	for _, name := range knows {
		versions[name] = "before"
	}
	p := &plane{s: s, clusters: map[string]*clusterv3.Cluster{}, assignments: map[string]*endpointv3.ClusterLoadAssignment{}, sent: map[string]int{}}
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(s.dial()).DeltaAggregatedResources(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, typeURL := range []string{resourcev3.ClusterType, resourcev3.EndpointType} {
		if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{
			Node: &corev3.Node{Id: "plane"}, TypeUrl: typeURL, ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: versions,
		}); err != nil {
			s.t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			answer, err := stream.Recv()
			if err != nil {
				return // the test or the coordinator ends
			}
			p.take(answer)
			if stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: answer.GetTypeUrl(), ResponseNonce: answer.GetNonce()}) != nil {
				return
			}
		}
	}()
	s.t.Cleanup(func() { <-done })
	return p
}

func (p *plane) take(answer *discoveryv3.DeltaDiscoveryResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removed += len(answer.GetRemovedResources())
	for _, r := range answer.GetResources() {
		p.sent[r.GetName()]++
		message, err := r.GetResource().UnmarshalNew()
		if err != nil {
			p.s.t.Error(err)
		}
		switch m := message.(type) {
		case *clusterv3.Cluster:
			p.clusters[r.GetName()] = m
		case *endpointv3.ClusterLoadAssignment:
			if p.assignments[r.GetName()] = m; p.look != nil {
				p.look(m)
			}
		}
	}
}

// told is the health that a cluster's endpoints have at the data plane, and
// whether it checks for itself.
func (p *plane) told(cluster string) (text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, group := range p.assignments[cluster].GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			text += e.GetHealthStatus().String() + " "
		}
	}
	if len(p.clusters[cluster].GetHealthChecks()) > 0 {
		return text + "checks"
	}
	return text + "trusts"
}

func (p *plane) wait(cluster, want string) {
	p.s.t.Helper()
	p.s.eventually(cluster+" to be told as "+want, func() bool { return p.told(cluster) == want })
}

func (p *plane) removals() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.removed
}

func (p *plane) times(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent[name]
}

// recorded waits for the last transition of a cluster's address.
func (s *site) recorded(cluster, address, to string) {
	s.t.Helper()
	s.eventually(cluster+" "+address+" to be recorded as "+to, func() bool {
		_, text := s.get("/v1/transitions?newestFirst=true&pageSize=1&cluster=" + cluster + "&address=" + address)
		return strings.Contains(text, `"to":"`+to+`"`)
	})
}

// change asks for a change over REST.
func (s *site) change(method, path, body string) string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.HTTPAddress()+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	answer, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s: %d %s, %v", method, path, answer.StatusCode, text, err)
	}
	return string(text)
}

// stopped ends a site, so that another can have its folder.
func (s *site) stopped() {
	s.t.Helper()
	s.stop()
	if err := <-s.ended; err != nil {
		s.t.Error(err)
	}
}

// shop is a site with two clusters that are well, and a data plane.
func shop(t *testing.T) (s *site, p *plane, addresses map[string]string, statuses map[string]*atomic.Int32, clusters string) {
	t.Helper()
	addresses, statuses = map[string]string{}, map[string]*atomic.Int32{}
	for _, name := range []string{"web", "pay"} {
		addresses[name], statuses[name] = upstream(t)
		clusters += static(name, addresses[name])
	}
	s = newSite(t, t.TempDir(), quick, clusters)
	s.ready()
	s.checker("c1")
	p = s.plane()
	p.wait("web", "HEALTHY trusts")
	p.wait("pay", "HEALTHY trusts")
	return s, p, addresses, statuses, clusters
}

func TestReloadChangesModeOfCluster(t *testing.T) {
	t.Parallel()
	s, p, addresses, statuses, clusters := shop(t)
	reload := func(more string) {
		t.Helper()
		if restart, err := s.Reload(configuration(t, s.dir, quick+more, clusters)); err != nil || len(restart) > 0 {
			t.Fatalf("Reload: %v, %v", restart, err)
		}
	}
	others := p.times("web")
	reload("policies: [{cluster_name_glob: pay, mode: SHADOW}]\n")
	p.wait("pay", "UNKNOWN checks")
	statuses["pay"].Store(http.StatusServiceUnavailable)
	s.recorded("pay", addresses["pay"], "UNHEALTHY")
	if got := p.told("pay"); got != "UNKNOWN checks" {
		t.Errorf("what is shadowed is told as %s", got)
	}
	_, text := s.get("/v1/endpoints?cluster=pay")
	if !strings.Contains(text, `"published":"UNKNOWN"`) || !strings.Contains(text, `"publishedReason":"shadow: the source says UNKNOWN"`) {
		t.Error(text)
	}
	if _, text := s.get("/v1/endpoints?cluster=web"); strings.Contains(text, "published") {
		t.Error(text)
	}
	if _, text := s.get("/v1/clusters"); strings.Count(text, `"mode":"SHADOW"`) != 1 || strings.Count(text, `"mode":"PUBLISH"`) != 1 {
		t.Error(text)
	}
	if _, text := s.get("/metrics"); !strings.Contains(text, "\nhdsd_clusters_shadowed 1\n") || !strings.Contains(text, "\nhdsd_frozen 0\n") {
		t.Error("the metrics say otherwise")
	}
	reload("")
	p.wait("pay", "UNHEALTHY trusts")
	if got := p.times("web"); got != others {
		t.Errorf("the other cluster was sent %d times, before %d", got, others)
	}
	reload("mode: SHADOW\npolicies: [{cluster_name_glob: pay, mode: PUBLISH}]\n")
	p.wait("web", "UNKNOWN checks")
	reload("")
	p.wait("web", "HEALTHY trusts")
}

func TestFreezeOverRestart(t *testing.T) {
	t.Parallel()
	s, p, addresses, statuses, clusters := shop(t)
	answer := s.change("POST", "/v1/freeze", `{"reason": "moving", "author": "alice"}`)
	p.wait("web", "UNKNOWN checks")
	p.wait("pay", "UNKNOWN checks")
	sent := p.times("web")
	if again := s.change("POST", "/v1/freeze", `{"reason": "still moving", "author": "bob"}`); !strings.Contains(again, `"replaced":{`) || strings.Contains(answer, `"replaced":{`) {
		t.Errorf("%s, then %s", answer, again)
	}
	statuses["web"].Store(http.StatusServiceUnavailable)
	s.recorded("web", addresses["web"], "UNHEALTHY")
	if got := p.told("web"); got != "UNKNOWN checks" || p.times("web") != sent {
		t.Errorf("while frozen, web is told as %s, %d times more", got, p.times("web")-sent)
	}
	s.stopped()

	s = newSite(t, s.dir, quick, clusters)
	s.ready()
	p = s.plane()
	p.wait("web", "UNKNOWN checks")
	var frozen struct{ Since, Reason, Author, Publish string }
	if _, text := s.get("/v1/freeze"); json.Unmarshal([]byte(text), &frozen) != nil || frozen.Reason != "still moving" || frozen.Author != "bob" ||
		frozen.Publish != "SOURCES" || !strings.Contains(answer, frozen.Since) {
		t.Errorf("after the restart: %s; first %s", text, answer)
	}
	if _, text := s.get("/readyz"); !strings.Contains(text, "by bob: still moving") {
		t.Error(text)
	}
	if _, text := s.get("/v1/endpoints?cluster=web"); !strings.Contains(text, `"publishedReason":"frozen by bob: still moving; the source says UNKNOWN"`) {
		t.Error(text)
	}
	if _, text := s.get("/v1/clusters"); strings.Count(text, `"mode":"FROZEN"`) != 2 {
		t.Error(text)
	}
	if _, text := s.get("/metrics"); !strings.Contains(text, "\nhdsd_frozen 1\n") {
		t.Error("the metric says otherwise")
	}
	response, err := http.Get("http://" + s.HTTPAddress() + "/v1/checkers")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if got := response.Header.Get("x-hdsd-frozen"); !strings.HasSuffix(got, "by bob: still moving") {
		t.Errorf("x-hdsd-frozen: %q", got)
	}

	ended, err := hdsdv1.NewControlClient(s.dial()).Unfreeze(t.Context(), &hdsdv1.UnfreezeRequest{Author: "carol"})
	if err != nil || ended.GetEnded().GetReason() != "still moving" {
		t.Errorf("Unfreeze: %v, %v", ended, err)
	}
	p.wait("web", "UNHEALTHY trusts") // nobody checks yet: as it was recorded
	p.wait("pay", "HEALTHY trusts")
	s.stopped()
	s = newSite(t, s.dir, quick, clusters)
	s.ready()
	s.plane().wait("web", "UNHEALTHY trusts")
}

func TestHeldHealthOverRestart(t *testing.T) {
	t.Parallel()
	s, p, addresses, statuses, _ := shop(t)
	statuses["pay"].Store(http.StatusServiceUnavailable)
	p.wait("pay", "UNHEALTHY trusts")
	s.change("POST", "/v1/freeze", `{"reason": "moving", "author": "alice", "publish": "HELD"}`)
	sent := p.times("web")
	statuses["web"].Store(http.StatusServiceUnavailable)
	statuses["pay"].Store(http.StatusOK)
	s.recorded("web", addresses["web"], "UNHEALTHY")
	s.recorded("pay", addresses["pay"], "HEALTHY")
	if web, pay := p.told("web"), p.told("pay"); web != "HEALTHY trusts" || pay != "UNHEALTHY trusts" || p.times("web") != sent {
		t.Errorf("while held, web is told as %s, %d times more, and pay as %s", web, p.times("web")-sent, pay)
	}
	more, _ := upstream(t)
	clusters := static("web", addresses["web"], more) + static("pay", addresses["pay"])
	move(t, s.dir, "clusters.yaml", "resources:\n"+clusters)
	p.wait("web", "HEALTHY UNKNOWN trusts")
	s.recorded("web", more, "HEALTHY")
	s.stopped()

	s = newSite(t, s.dir, quick, clusters)
	s.ready()
	p = s.plane()
	p.wait("web", "HEALTHY UNKNOWN trusts")
	p.wait("pay", "UNHEALTHY trusts")
	s.change("DELETE", "/v1/freeze?author=bob", "")
	p.wait("web", "UNHEALTHY HEALTHY trusts")
	p.wait("pay", "HEALTHY trusts")
}
