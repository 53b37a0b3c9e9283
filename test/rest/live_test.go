package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"hdsd/api"
	"hdsd/eds"
)

// unchecked is a cluster that nobody is to check; aside has one endpoint that
// nobody can.
const (
	unchecked = `
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: unchecked
  endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: "127.0.0.9", port_value: 9}}}}]}]
`
	aside = `
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: aside
  type: STRICT_DNS
  connect_timeout: 1s
  health_checks: [` + tcpCheck + `]
  load_assignment:
    cluster_name: aside
    endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: db.internal, port_value: 5432}}}}]}]
`
)

// newFleet is a coordinator with three checkers, a subscriber and clusters of
// every kind, all of them judged.
func newFleet(t *testing.T) (s *site, up, down string) {
	t.Parallel()
	up, down = upstream(t, http.StatusOK), upstream(t, http.StatusServiceUnavailable)
	s = newSite(t, static("web", httpCheck, up, up, down), static("tcp", tcpCheck, up, "[::1]:1"), unchecked, aside)
	for i := range 3 {
		s.checker(fmt.Sprintf("checker-%d", i))
	}
	s.subscribe("dp-1")
	s.eventually("the first verdicts", func() bool {
		return len(items(s.get("/v1/transitions"))) == 5 && len(items(s.get("/v1/endpoints?health=HEALTHY"))) == 3
	})
	return s, up, down
}

// subscribe has a data plane take all endpoints until the test ends.
func (s *site) subscribe(id string) {
	s.t.Helper()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(s.dial()).StreamAggregatedResources(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	request := &discoveryv3.DiscoveryRequest{
		Node: &corev3.Node{Id: id}, TypeUrl: "type.googleapis.com/" + string((&endpointv3.ClusterLoadAssignment{}).ProtoReflect().Descriptor().FullName()),
	}
	if err := stream.Send(request); err != nil {
		s.t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		s.t.Fatal(err)
	}
	request.VersionInfo, request.ResponseNonce = answer.GetVersionInfo(), answer.GetNonce()
	if err := stream.Send(request); err != nil {
		s.t.Fatal(err)
	}
}

// TestAnswersAreAsTheDocumentSays asks everything that the document has, with
// every parameter, well and badly.
func TestAnswersAreAsTheDocumentSays(t *testing.T) {
	s, up, _ := newFleet(t)
	now := url.QueryEscape(time.Now().UTC().Format(time.RFC3339Nano))
	for _, path := range []string{
		"/v1/endpoints?cluster=&address=&health=&asOf=&pageSize=&pageToken=",
		"/v1/endpoints?cluster=web&address=" + up + "&health=HEALTHY&pageSize=1",
		"/v1/endpoints?asOf=" + now + "&health=UNHEALTHY",
		"/v1/endpoints?asOf=2001-01-01T00:00:00Z&pageSize=10000",
		"/v1/transitions?cluster=web&address=" + up + "&startTime=2001-01-01T00:00:00Z&endTime=" + now + "&newestFirst=true&pageSize=1&pageToken=",
		"/v1/availability?cluster=web&address=" + up + "&startTime=2001-01-01T00:00:00Z&endTime=" + now + "&pageSize=1&pageToken=",
		"/v1/incidents?cluster=web&id=x&open=true&startTime=2001-01-01T00:00:00Z&endTime=" + now + "&pageSize=1&pageToken=", "/v1/incidents?allowPartial=true",
		"/v1/events?cluster=web&address=" + up + "&checker=checker-1&kind=CHECKER&locality=/a&startTime=2001-01-01T00:00:00Z&endTime=" + now + "&newestFirst=true&pageSize=1&pageToken=", "/v1/events",
		"/v1/transitions?checker=checker-1&pageSize=1", "/v1/transitions?unhealthy=true&locality=/a", "/v1/endpoints?unhealthy=true&locality=/a",
		"/v1/clusters?unhealthy=true&locality=/a", "/v1/clusters?cluster=web", "/v1/clients?cluster=web", "/v1/notify",
		"/v1/availability", "/v1/availability?by=zone&slo=99.9%25", "/v1/availability?by=checker&slo=0.5&pageSize=1", "/v1/clusters?pageSize=2&pageToken=", "/v1/clusters", "/v1/checkers?pageSize=0&pageToken=&lost=true", "/v1/clients?pageSize=2&pageToken=", "/v1/clients",
		"/v1/openapi.json", "/v1/freeze", "/v1/trust", "/v1/clock", "/v1/overrides", "/v1/overrides?pageSize=1&pageToken=", "/v1/sources", "/v1/status", "/v1/replicas", "/v1/overview", "/v1/overview?limit=1", "/v1/paths", "/v1/paths?pageSize=1&pageToken=", "/v1/paths?pageSize=1&pageToken=",
		"/v1/audit?startTime=2001-01-01T00:00:00Z&endTime=" + now + "&newestFirst=true&pageSize=1&pageToken=", "/v3/discovery:client_status?node_id=dp-1&exclude_resource_contents=true",
	} {
		s.get(path)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/v1/openapi.yaml"} {
		if a := s.do(http.MethodGet, path, ""); a.Status != http.StatusOK || len(a.Body) == 0 {
			t.Errorf("GET %s: %d %s", path, a.Status, a.Body)
		}
	}
	for _, path := range []string{"endpoints", "transitions", "incidents", "events", "availability", "watch", "clusters", "clients"} {
		s.refused("/v1/"+path+"?cluster=nowhere", http.StatusNotFound)
	}
	for _, path := range []string{"endpoints", "transitions", "incidents", "events", "availability", "watch", "clusters", "checkers", "clients", "freeze", "trust", "clock", "overrides", "audit", "sources", "status", "overview", "paths", "replicas", "notify"} {
		s.refused("/v1/"+path+"?nonsense=1", http.StatusBadRequest)
	}
	for _, wrong := range []string{"by=rack", "slo=1", "slo=x"} {
		s.refused("/v1/availability?"+wrong, http.StatusBadRequest)
	}
	s.refused("/v1/events?kind=NOTHING", http.StatusBadRequest)
	if a := s.do(http.MethodPost, "/v1/annotations", `{"text": "tried", "cluster": "web", "author": "ann"}`); a.Status != http.StatusOK {
		t.Errorf("a note: %d %s", a.Status, a.Body)
	}
	for body, want := range map[string]int{`{"text": ""}`: http.StatusBadRequest, `{"text": "x", "cluster": "nowhere"}`: http.StatusNotFound} {
		if a := s.do(http.MethodPost, "/v1/annotations", body); a.Status != want {
			t.Errorf("a note %s: %d %s", body, a.Status, a.Body)
		}
	}
	s.refused("/v1/nothing", http.StatusNotFound)
	s.refused("/v1/", http.StatusNotFound)
	s.refused("/v3/discovery:client_status?nonsense=1", http.StatusBadRequest)
	for _, path := range []string{"/v1/endpoints", "/v1/watch", "/v1/openapi.json", "/v1/freeze", "/v1/trust", "/v1/clock", "/v1/overrides", "/v1/overrides?pageSize=1&pageToken=", "/v1/overrides/preview", "/v1/audit", "/v1/sources", "/v3/discovery:client_status", "/v3/discovery:health_check", eds.EndpointsPath, eds.ClustersPath} {
		if a := s.do(http.MethodPut, path, "{}"); a.Status != http.StatusMethodNotAllowed || a.Header.Get("Allow") == "" {
			t.Errorf("PUT %s: %d, allowed %q", path, a.Status, a.Header.Get("Allow"))
		}
	}
	s.changes()
	s.overrides(up)
	s.trust()
	s.clock()
	s.sources()
	s.fetches()
	s.polls()
	s.watches()
	for body, want := range map[string]int{`{"name": "nobody"}`: http.StatusNotFound, `{"colour": "red"}`: http.StatusBadRequest} {
		if a := s.do(http.MethodPost, "/v1/notify", body); a.Status != want {
			t.Errorf("a test of receivers %s: %d %s", body, a.Status, a.Body)
		}
	}
	for _, what := range s.document.Unseen(http.StatusOK, http.StatusNotModified, http.StatusBadRequest, http.StatusNotFound, http.StatusForbidden, http.StatusUnsupportedMediaType) {
		switch what {
		case "event error", "POST /v1/freeze 415", "POST /v1/overrides 415", "POST /v1/overrides/preview 415", "POST /v1/sources 200",
			"POST /v1/sources 415", "POST /v1/trust 415", "POST /v1/clock 415", "POST /v1/annotations 415", "POST /v1/notify 200", "POST /v1/notify 415": // the tests of coordinator see these
		default:
			if strings.HasSuffix(what, " 403") { // and these
				continue
			}
			t.Errorf("nothing was seen of %s", what)
		}
	}
}

// changes freezes hdsd, well and badly.
func (s *site) changes() {
	s.t.Helper()
	for _, want := range []struct {
		method, query, body string
		status              int
	}{
		{http.MethodPost, "", `{}`, http.StatusBadRequest},
		{http.MethodPost, "", `{"reason":"x","nonsense":1}`, http.StatusBadRequest},
		{http.MethodPost, "?reason=x", `{}`, http.StatusBadRequest},
		{http.MethodDelete, "?nonsense=1", "", http.StatusBadRequest},
		{http.MethodDelete, "", "", http.StatusOK},
		{http.MethodPost, "", `{"reason":"a test","publish":"HELD"}`, http.StatusOK},
		{http.MethodPost, "", `{"reason":"a test","author":"me"}`, http.StatusOK},
		{http.MethodGet, "", "", http.StatusOK},
		{http.MethodDelete, "?author=me", "", http.StatusOK},
	} {
		if a := s.do(want.method, "/v1/freeze"+want.query, want.body); a.Status != want.status {
			s.t.Errorf("%s /v1/freeze%s %s: %d, want %d: %s", want.method, want.query, want.body, a.Status, want.status, a.Body)
		}
		s.get("/v1/endpoints") // with what is published, and the header
	}
}

// clock says that the clock is right, well and badly.
func (s *site) clock() {
	s.t.Helper()
	for body, want := range map[string]int{`{"nonsense":1}`: http.StatusBadRequest, `{"author":"me"}`: http.StatusOK} {
		if a := s.do(http.MethodPost, "/v1/clock", body); a.Status != want {
			s.t.Errorf("POST /v1/clock %s: %d, want %d: %s", body, a.Status, want, a.Body)
		}
	}
}

// sources accepts what sources take away, well and badly.
func (s *site) sources() {
	s.t.Helper()
	for body, want := range map[string]int{
		`{"nonsense":1}`: http.StatusBadRequest, `{"name":"nowhere"}`: http.StatusNotFound, `{"name":"local","reason":"x"}`: http.StatusBadRequest,
	} {
		if a := s.do(http.MethodPost, api.SourcesPath, body); a.Status != want {
			s.t.Errorf("POST %s %s: %d, want %d: %s", api.SourcesPath, body, a.Status, want, a.Body)
		}
	}
}

// trust says which checkers to believe, well and badly.
func (s *site) trust() {
	s.t.Helper()
	for _, want := range []struct {
		method, query, body string
		status              int
	}{
		{http.MethodPost, "", `{}`, http.StatusBadRequest},
		{http.MethodPost, "", `{"checker":"c","word":"TRUSTED","reason":"x","nonsense":1}`, http.StatusBadRequest},
		{http.MethodPost, "", `{"checker":"checker-1","word":"DISTRUSTED","reason":"a test"}`, http.StatusOK},
		{http.MethodPost, "", `{"checker":"checker-1","word":"TRUSTED","reason":"a test","author":"me"}`, http.StatusOK},
		{http.MethodGet, "", "", http.StatusOK},
		{http.MethodDelete, "?nonsense=1", "", http.StatusBadRequest},
		{http.MethodDelete, "?checker=checker-1&author=me", "", http.StatusOK},
		{http.MethodDelete, "?checker=checker-1", "", http.StatusOK},
	} {
		if a := s.do(want.method, "/v1/trust"+want.query, want.body); a.Status != want.status {
			s.t.Errorf("%s /v1/trust%s %s: %d, want %d: %s", want.method, want.query, want.body, a.Status, want.status, a.Body)
		}
		s.get("/v1/checkers") // with what is said
	}
}

// overrides drains an endpoint, well and badly.
func (s *site) overrides(up string) {
	s.t.Helper()
	drain := func(scope string) string { return `{` + scope + `,"health":"DRAINING","reason":"a test"}` }
	for _, want := range []struct {
		method, query, body string
		status              int
	}{
		{http.MethodPost, "", `{}`, http.StatusBadRequest},
		{http.MethodPost, "", `{"cluster":"web","nonsense":1}`, http.StatusBadRequest},
		{http.MethodPost, "", drain(`"cluster":"nowhere"`), http.StatusNotFound},
		{http.MethodPost, "", drain(`"cluster":"web","address":"10.9.9.9:1"`), http.StatusNotFound},
		{http.MethodPost, "", drain(`"cluster":"web"`), http.StatusOK},
		{http.MethodPost, "", drain(`"cluster":"web","address":"` + up + `","duration":"3600s"`), http.StatusOK},
		{http.MethodPost, "", drain(`"cluster":"web","address":"` + up + `","author":"me"`), http.StatusOK},
		{http.MethodGet, "", "", http.StatusOK},
		{http.MethodDelete, "?nonsense=1", "", http.StatusBadRequest},
		{http.MethodDelete, "?cluster=nowhere&address=", "", http.StatusNotFound},
		{http.MethodDelete, "?cluster=web&author=me&address=" + up, "", http.StatusOK},
		{http.MethodDelete, "?all=true&region=&zone=&subZone=", "", http.StatusOK},
	} {
		if a := s.do(want.method, "/v1/overrides"+want.query, want.body); a.Status != want.status {
			s.t.Errorf("%s /v1/overrides%s %s: %d, want %d: %s", want.method, want.query, want.body, a.Status, want.status, a.Body)
		}
		if want.method == http.MethodPost {
			if a := s.do(want.method, api.PreviewPath, want.body); a.Status != want.status {
				s.t.Errorf("POST %s %s: %d, want %d: %s", api.PreviewPath, want.body, a.Status, want.status, a.Body)
			}
		}
		s.get("/v1/endpoints") // with the override, and the clusters with their count
		s.get("/v1/clusters")
	}
}

// fetches asks for client status and health checks by POST.
func (s *site) fetches() {
	s.t.Helper()
	const node = `{"node":{"id":"dp-9"},"capability":{"health_check_protocols":["TCP"]}}`
	for _, want := range []struct {
		path, body string
		status     int
	}{
		{"/v3/discovery:client_status", `{"nodeMatchers":[{"nodeId":{"exact":"dp-1"}}]}`, http.StatusOK},
		{"/v3/discovery:client_status", `{"nonsense":1}`, http.StatusBadRequest},
		{"/v3/discovery:health_check", `{"healthCheckRequest":` + node + `}`, http.StatusOK},
		{"/v3/discovery:health_check", `[]`, http.StatusBadRequest},
		{"/v2/discovery:health_check", `{"healthCheckRequest":` + strings.ReplaceAll(node, "dp-9", "dp-8") + `}`, http.StatusOK},
		{"/v2/discovery:health_check", `[]`, http.StatusBadRequest},
	} {
		if a := s.do(http.MethodPost, want.path, want.body); a.Status != want.status {
			s.t.Errorf("POST %s %s: %d, want %d: %s", want.path, want.body, a.Status, want.status, a.Body)
		}
	}
}

// polls asks for endpoints and clusters as a data plane without a stream does.
func (s *site) polls() {
	s.t.Helper()
	for _, path := range []string{eds.EndpointsPath, eds.ClustersPath} {
		a := s.do(http.MethodPost, path, `{"node":{"id":"dp-7"},"resource_names":["web","nowhere"]}`)
		found := object(s, a.Body)
		if a.Status != http.StatusOK || len(items(found)) != 1 {
			s.t.Errorf("POST %s: %d %s", path, a.Status, a.Body)
		}
		version, _ := found["versionInfo"].(string)
		for body, status := range map[string]int{
			`{"resource_names":["web","nowhere"],"version_info":"` + version + `"}`:                         http.StatusNotModified,
			`{"version_info":"` + version + `"}`:                                                            http.StatusOK,
			`{"error_detail":{"message":"no"},"response_nonce":"` + version + `","resource_names":["web"]}`: http.StatusNotModified,
			`{"type_url":"of another kind"}`:                                                                http.StatusBadRequest,
			`[]`:                                                                                            http.StatusBadRequest,
		} {
			if a := s.do(http.MethodPost, path, body); a.Status != status {
				s.t.Errorf("POST %s %s: %d, want %d: %s", path, body, a.Status, status, a.Body)
			}
		}
	}
}

// watches sees the present state, then a change, and resumes before it.
func (s *site) watches() {
	s.t.Helper()
	synced := func(all []Event) bool { return len(all) > 0 && all[len(all)-1].Event == "synced" }
	all := s.watch("/v1/watch?cluster=&address=&resumeToken=&unhealthy=&locality=", "", synced)
	if len(all) != 8 { // 7 endpoints
		s.t.Errorf("the present state is %d events: %s", len(all), all)
	}
	if some := s.watch("/v1/watch?cluster=tcp&address=[::1]:1", "", synced); len(some) != 2 {
		s.t.Errorf("of one endpoint, it is %d events", len(some))
	}
	place := all[len(all)-1].ID
	s.say(static("web", httpCheck, "127.0.0.1:1"), static("tcp", tcpCheck, "127.0.0.1:1"))
	changed := func(all []Event) bool { // what left comes first
		return len(all) > 0 && all[0].Event == "transition" && strings.Contains(string(all[len(all)-1].Data), `"127.0.0.1:1"`)
	}
	for _, resumed := range [][]Event{
		s.watch("/v1/watch?cluster=web&resumeToken="+url.QueryEscape(place), "", changed), s.watch("/v1/watch?cluster=web", place, changed),
	} {
		if !changed(resumed) {
			s.t.Errorf("resumed, it shows %s", resumed)
		}
	}
	clusters := func(all []Event) bool { return len(all) > 0 && all[len(all)-1].Event == "clusters" }
	if summed := s.watch("/v1/watch?by=cluster&resumeToken="+url.QueryEscape(place), "", clusters); !clusters(summed) || !strings.Contains(string(summed[len(summed)-1].Data), `"web"`) {
		s.t.Errorf("by cluster, it shows %s", summed)
	}
	s.refused("/v1/watch?by=zone", http.StatusBadRequest)
	s.refused("/v1/watch?resumeToken=bad", http.StatusBadRequest)
}
