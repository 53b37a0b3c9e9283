package xds

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

// web answers polls as a test says.
type web struct {
	mu       sync.Mutex
	answers  map[string]string // by path: "304", "307", "500", "" or a body
	asked    map[string]string // the last request by path
	count    map[string]int
	received http.Header
	delay    time.Duration
}

func newWeb() *web {
	return &web{answers: make(map[string]string), asked: make(map[string]string), count: make(map[string]int)}
}

func (w *web) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	w.asked[r.URL.Path], w.received = string(body), r.Header
	w.count[r.URL.Path]++
	answer, delay := w.answers[r.URL.Path], w.delay
	w.mu.Unlock()
	time.Sleep(delay)
	switch answer {
	case "304":
		out.WriteHeader(http.StatusNotModified)
	case "404":
		http.NotFound(out, r)
	case "500":
		http.Error(out, "out of order", http.StatusInternalServerError)
	case "307":
		http.Redirect(out, r, "/elsewhere", http.StatusTemporaryRedirect)
	default:
		_, _ = io.WriteString(out, answer)
	}
}

func (w *web) say(path, answer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[path] = answer
}

// last returns the last request, without the spaces that protojson adds at will.
func (w *web) last(t *testing.T, path string) string {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(w.asked[path]), &fields); err != nil {
		t.Fatalf("%s was asked %q: %v", path, w.asked[path], err)
	}
	out, _ := json.Marshal(fields)
	return string(out)
}

// sortedNode is the node with its fields in order, as last gives them.
const sortedNode = `"node":{"client_features":["xds.config.resource-in-sotw"],"id":"hdsd-test"}`

const (
	cds = "/v3/discovery:clusters"
	edp = "/v3/discovery:endpoints"
)

func jsonCluster(name, host string) string {
	return `{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"` + name + `","type":"STATIC",
		"load_assignment":{"clusterName":"` + name + `","endpoints":[{"lbEndpoints":[{"endpoint":{"address":{"socket_address":{"address":"` + host + `","port_value":80}}}}]}]}}`
}

const jsonEDS = `{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"web","type":"EDS","eds_cluster_config":{"eds_config":{"self":{}}}}`

func jsonEndpoints(host string) string {
	return `{"@type":"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment","cluster_name":"web","endpoints":[{"lb_endpoints":[{"endpoint":{"address":{"socket_address":{"address":"` + host + `","port_value":80}}}}]}]}`
}

func TestPolls(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		w := newWeb()
		stop := n.serveHTTP("web", w)
		defer stop()
		w.say(cds, `{"version_info":"c1","unknown_to_us":1,"resources":[`+jsonEDS+`,`+jsonCluster("db", "10.0.0.9")+`]}`)
		w.say(edp, `{"versionInfo":"e1","typeUrl":"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment","resources":[`+jsonEndpoints("10.0.0.1")+`]}`)
		r := n.run(restSource("http://web/"))
		defer r.stop()
		equal(t, "first", w.last(t, cds), `{`+sortedNode+`,`+clustersURL+`}`)
		equal(t, "names", w.last(t, edp), `{`+sortedNode+`,"resource_names":["web"],`+endpointURL+`}`)
		w.mu.Lock()
		equal(t, "content type", w.received.Get("Content-Type"), "application/json")
		w.mu.Unlock()
		first := r.latest()
		equal(t, "set", said(first), "db=10.0.0.9 web=10.0.0.1")

		time.Sleep(1100 * time.Millisecond)
		equal(t, "version", w.last(t, cds), `{`+sortedNode+`,`+clustersURL+`,"version_info":"c1"}`)
		equal(t, "version", w.last(t, edp), `{`+sortedNode+`,"resource_names":["web"],`+endpointURL+`,"version_info":"e1"}`)
		w.say(cds, "304")
		w.say(edp, "")
		time.Sleep(10 * time.Second)
		r.nothing()
		equal(t, "error", r.Status().Types[0].LastError, "")

		w.say(edp, `{"version_info":"e2","resources":[`+jsonEndpoints("10.0.0.2")+`]}`)
		time.Sleep(2 * time.Second)
		set := r.latest()
		equal(t, "set", said(set), "db=10.0.0.9 web=10.0.0.2")
		equal(t, "pointer", set.Clusters[0], first.Clusters[0])
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.count[cds] < 11 || w.count[cds] > 15 {
			t.Errorf("asked %d times in about 13 s, want once a second and a little", w.count[cds])
		}
	})
}

func TestPollRejection(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		w := newWeb()
		stop := n.serveHTTP("web", w)
		defer stop()
		w.say(cds, `{"version_info":"c1","resources":[`+jsonCluster("a", "10.0.0.1")+`,`+jsonCluster("b", "10.0.0.2")+`]}`)
		r := n.run(restSource("http://web"))
		defer r.stop()
		r.latest()
		w.say(cds, `{"version_info":"c2","resources":[`+jsonCluster("a", "10.0.0.7")+`,
			{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"b","connect_timeout":"soon"},
			{"@type":"type.googleapis.com/nobody.knows.This","name":"c"}]}`)
		time.Sleep(2 * time.Second)
		set := r.latest()
		equal(t, "set", said(set), "a=10.0.0.7 b=10.0.0.2 !c=none")
		has(t, "problem", set.Problems[0].String(), "b: what the management server says of it is refused: it cannot be decoded")
		time.Sleep(2 * time.Second)
		has(t, "told", w.last(t, cds), `"error_detail":{"code":3,"message":"2 of 3 resources refused: b (it cannot be decoded`, `"version_info":"c1"`)

		for what, answer := range map[string]string{
			"the answer is 500 Internal Server Error: out of order": "500",
			"the answer is 307 Temporary Redirect":                  "307",
			"the answer is no DiscoveryResponse in JSON":            `{"version_info":1}`,
			"its type_url is":                    `{"type_url":"type.googleapis.com/other"}`,
			"the answer's resources are no list": `{"resources":{}}`,
			"no DiscoveryResponse":               `nonsense`,
		} {
			w.say(cds, answer)
			time.Sleep(time.Minute)
			has(t, "error", r.Status().Types[0].LastError, what)
			equal(t, "connected", r.Status().Types[0].Connected, false)
			r.nothing()
		}
		w.say(cds, `{"version_info":"c3"}`)
		time.Sleep(time.Minute)
		equal(t, "none", said(r.latest()), "")
		equal(t, "connected", r.Status().Types[0].Connected, true)
	})
}

// TestPollOfSeveral: the next is asked when one fails, and when it is too slow.
func TestPollOfSeveral(t *testing.T) {
	for timeout, given := range map[time.Duration]*durationpb.Duration{time.Second: nil, 3 * time.Second: durationpb.New(3 * time.Second)} {
		t.Run(timeout.String(), func(t *testing.T) {
			inNetwork(t, func(t *testing.T, n *network) {
				slow, good := newWeb(), newWeb()
				slow.delay = time.Hour
				defer n.serveHTTP("slow", slow)()
				defer n.serveHTTP("good", good)()
				good.say(cds, `{"version_info":"c1","resources":[`+jsonCluster("a", "10.0.0.1")+`]}`)
				from := restSource("http://nobody", "http://slow", "http://good")
				from.GetApiConfigSource().RequestTimeout = given
				r := n.run(from)
				time.Sleep(timeout - time.Nanosecond)
				r.notYet()
				has(t, "error", r.Status().Types[0].LastError, "nobody is at nobody")
				time.Sleep(time.Nanosecond)
				equal(t, "set", said(r.latest()), "a=10.0.0.1")
				equal(t, "server", r.Status().Types[0].Server, "http://good")
				r.stop()
				time.Sleep(2 * time.Hour) // for the slow one to give up
			})
		})
	}
}

// TestPollFollowsClusters: endpoints of a new cluster are asked for at once,
// and taken though the answer is the one of before.
func TestPollFollowsClusters(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		w := newWeb()
		defer n.serveHTTP("web", w)()
		both := `{"resources":[` + jsonEndpoints("10.0.0.1") + `,` + strings.Replace(jsonEndpoints("10.0.0.2"), `"web"`, `"api"`, 1) + `]}`
		w.say(cds, `{"resources":[`+jsonEDS+`]}`)
		w.say(edp, both)
		from := restSource("http://web")
		from.GetApiConfigSource().RefreshDelay = durationpb.New(time.Minute)
		r := n.run(from)
		defer r.stop()
		equal(t, "set", said(r.latest()), "web=10.0.0.1")
		w.say(cds, `{"resources":[`+jsonEDS+`,`+strings.Replace(jsonEDS, `"web"`, `"api"`, 1)+`]}`)
		for polls := 1; polls < 2; {
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			w.mu.Lock()
			polls = w.count[cds]
			w.mu.Unlock()
		}
		has(t, "names", w.last(t, edp), `"resource_names":["api","web"]`)
		equal(t, "set", said(r.latest()), "api=10.0.0.2 web=10.0.0.1")
	})
}

// TestPollForgets: what was given up is forgotten when it is not asked for.
func TestPollForgets(t *testing.T) {
	s := primed(t, ways["REST"])
	s.accept(s.clusters, &update{items: []item{{body: pack(eds("api", ""))}}, removed: map[string]bool{"web": true}})
	equal(t, "kept", s.assignments.entries["web"] != nil, true)
	if _, _, err := newPoller(s.channels[1]).question(); err != nil {
		t.Fatal(err)
	}
	equal(t, "kept", s.assignments.entries["web"] != nil, false)
}
