package xds

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/rs/zerolog"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"

	"hdsd/envoy/rules"
	"hdsd/source/hold"
)

// allOrNothing answers a request for assignments, as java-control-plane does on ADS: with
// all of them, or not at all if one of the names is unknown to it.
func allOrNothing(p *statePeer, request []string, version string, known map[string]string) {
	response := state(rules.Assignment, version, version)
	for _, name := range request {
		if known[name] == "" {
			return
		}
		response.Resources = append(response.Resources, pack(endpoints(name, known[name])))
	}
	p.send(response)
}

// TestForeignNamesHaveAStreamOfTheirOwn: the server answers only when it has every name, so
// a name that a cluster of another source asks for must not cost the server's own.
func TestForeignNamesHaveAStreamOfTheirOwn(t *testing.T) {
	scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(t *testing.T, s *script, r *running) {
		known := map[string]string{"web": "10.0.0.1"}
		p := next(t, s.state)
		p.next()
		p.send(state(rules.Cluster, "c1", "n1", eds("web", "")))
		p.next()
		allOrNothing(p, p.next().GetResourceNames(), "e1", known)
		p.next()
		equal(t, "set", said(r.latest()), "web=10.0.0.1")

		r.Want([]string{"elsewhere"})
		p.quiet()
		q := next(t, s.state)
		equal(t, "foreign", strings.Join(q.next().GetResourceNames(), " "), "elsewhere")
		known["web"] = "10.0.0.2"
		allOrNothing(p, []string{"web"}, "e2", known)
		equal(t, "set", said(r.latest()), "web=10.0.0.2")

		known["elsewhere"] = "10.0.0.9"
		allOrNothing(q, []string{"elsewhere"}, "e3", known)
		equal(t, "foreign", said(r.latest()), "elsewhere=10.0.0.9 web=10.0.0.2")
		q.next()
		// What another stream says of a name that this one does not ask for does not count.
		q.send(state(rules.Assignment, "e1", "old", endpoints("web", "10.0.0.1"), endpoints("elsewhere", "10.0.0.9")))
		r.nothing()
		q.next()
		q.quiet()
		p.next()
		p.quiet()
	})
}

// TestForeignNamesHaveAPollOfTheirOwn: as on streams.
func TestForeignNamesHaveAPollOfTheirOwn(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		w := newWeb()
		asked := make(chan string, 1000)
		defer n.serveHTTP("web", http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.URL.Path == edp {
				asked <- string(body)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			w.ServeHTTP(out, r)
		}))()
		w.say(cds, `{"version_info":"c1","resources":[`+jsonEDS+`]}`)
		w.say(edp, `{"version_info":"e1","resources":[`+jsonEndpoints("10.0.0.1")+`]}`)
		r := n.run(restSource("http://web"))
		r.Want([]string{"elsewhere"})
		time.Sleep(time.Minute)
		r.stop()
		close(asked)
		web, elsewhere := 0, 0
		for body := range asked {
			hasWeb, hasElsewhere := strings.Contains(body, `"web"`), strings.Contains(body, `"elsewhere"`)
			if hasWeb == hasElsewhere {
				t.Fatalf("asked %s", body)
			}
			if hasWeb {
				web++
			} else {
				elsewhere++
			}
		}
		equal(t, "both are asked for", web > 0 && elsewhere > 0, true)
	})
}

// TestSilenceIsNoticed: a server that stops answering when a name is added is told of, until
// it answers again.
func TestSilenceIsNoticed(t *testing.T) {
	var log bytes.Buffer
	scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(t *testing.T, s *script, r *running) {
		known := map[string]string{"web": "10.0.0.1"}
		p := next(t, s.state)
		p.next()
		p.send(state(rules.Cluster, "c1", "n1", eds("web", "")))
		p.next()
		allOrNothing(p, p.next().GetResourceNames(), "e1", known)
		p.next()
		r.latest()
		time.Sleep(time.Hour)
		equal(t, "idle is no silence", len(r.Status().Types[1].LastError), 0)
		p.quiet()

		p.send(state(rules.Cluster, "c2", "n2", eds("web", ""), eds("lost", "svc")))
		p.next()
		names := p.next().GetResourceNames()
		allOrNothing(p, names, "e2", known)
		time.Sleep(14 * time.Second)
		synctest.Wait()
		equal(t, "too early", len(r.Status().Types[1].LastError), 0)
		time.Sleep(time.Second)
		const silent = "has not answered about endpoints since these names were added: svc; it may answer only when it has all of them"
		set := r.latest()
		has(t, "problem", set.Problems[len(set.Problems)-1].String(), silent)
		has(t, "error", r.Status().Types[1].LastError, silent)
		has(t, "event", log.String(), `"event":"upstream_silent"`, `"names":["svc"]`)

		known["svc"] = "10.0.0.2"
		allOrNothing(p, names, "e3", known)
		set = r.latest()
		equal(t, "set", said(set), "lost=10.0.0.2 web=10.0.0.1")
		equal(t, "problems", len(set.Problems), 0)
		equal(t, "error", r.Status().Types[1].LastError, "")
		equal(t, "told once", strings.Count(log.String(), "upstream_silent"), 1)
	}, func(o *Options) { o.Log = zerolog.New(zerolog.SyncWriter(&log)) })
}

// TestAddedNamesAreAskedForOnceMore: a server that compares nothing but versions does not
// answer the first time, as rust-control-plane on ADS.
func TestAddedNamesAreAskedForOnceMore(t *testing.T) {
	scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(t *testing.T, s *script, r *running) {
		p := next(t, s.state)
		p.next()
		p.send(state(rules.Cluster, "c1", "n1", eds("web", "")))
		p.next()
		p.next()
		p.send(state(rules.Assignment, "v1", "n2", endpoints("web", "10.0.0.1")))
		p.next()
		p.send(state(rules.Cluster, "c2", "n3", eds("web", ""), eds("new", "")))
		p.next()
		equal(t, "first", p.next().GetVersionInfo(), "v1")
		time.Sleep(reaskAfter)
		equal(t, "again", text(p.next()), `{`+nodeField+`,"resource_names":["new","web"],`+endpointURL+`,"response_nonce":"n2"}`)
		p.send(state(rules.Assignment, "v1", "n4", endpoints("web", "10.0.0.1"), endpoints("new", "10.0.0.2")))
		equal(t, "set", said(r.latest()), "new=10.0.0.2 web=10.0.0.1")
		equal(t, "ack", p.next().GetVersionInfo(), "v1")
		time.Sleep(time.Hour)
		p.quiet()
	})
}

// TestTheFirstDeltaResponseIsComplete: a server that does not read initial_resource_versions
// never tells what was removed while hdsd was away.
func TestTheFirstDeltaResponseIsComplete(t *testing.T) {
	for _, complete := range []bool{true, false} {
		scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
			p := next(t, s.delta)
			p.next()
			p.send(change(rules.Cluster, "n1", wrap("a", "1", inline("a", "10.0.0.1")), wrap("b", "1", inline("b", "10.0.0.2"))))
			p.send(change(rules.Cluster, "n2", wrap("c", "1", inline("c", "10.0.0.3"))))
			equal(t, "later responses are changes", said(r.latest()), "a=10.0.0.1 b=10.0.0.2 c=10.0.0.3")
			p.end(errEnough)
			p = reconnect(t, s.delta)
			equal(t, "asks for everything", len(p.next().GetInitialResourceVersions()) == 0, complete)
			p.send(change(rules.Cluster, "n1", wrap("a", "1", inline("a", "10.0.0.7"))))
			want := "a=10.0.0.7 b=10.0.0.2 c=10.0.0.3"
			if complete {
				want = "a=10.0.0.7"
			}
			equal(t, "set", said(r.latest()), want)
		}, func(o *Options) { o.FirstDeltaResponseIsComplete = complete })
	}
}

// TestAnEmptyFirstDeltaResponseIsHeld: a server that restarts empty takes away nothing at once,
// and what it has again later is no longer held.
func TestAnEmptyFirstDeltaResponseIsHeld(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		held := hold.New(hold.Rule{Share: 0.5, For: time.Minute})
		p := next(t, s.delta)
		p.next()
		p.send(change(rules.Cluster, "n1", wrap("a", "1", inline("a", "10.0.0.1")), wrap("b", "1", inline("b", "10.0.0.2"))))
		equal(t, "set", said(held.Apply(time.Now(), r.latest(), nil)), "a=10.0.0.1 b=10.0.0.2")
		p.end(errEnough)
		p = reconnect(t, s.delta)
		p.next()
		p.send(change(rules.Cluster, "n1"))
		empty := r.latest()
		equal(t, "said", said(empty), "")
		equal(t, "in use", said(held.Apply(time.Now(), empty, nil)), "a=10.0.0.1 b=10.0.0.2")
		p.send(change(rules.Cluster, "n2", wrap("a", "1", inline("a", "10.0.0.1")), wrap("b", "2", inline("b", "10.0.0.3"))))
		equal(t, "it is back", said(held.Apply(time.Now(), r.latest(), nil)), "a=10.0.0.1 b=10.0.0.3,10.0.0.2")
		p.send(removal(rules.Cluster, "n3", "a"))
		equal(t, "held.Held", held.Status().Held != nil, true)
		equal(t, "its time is over", said(held.Apply(time.Now().Add(time.Minute), r.latest(), nil)), "a=10.0.0.1 b=10.0.0.3")
	}, func(o *Options) { o.FirstDeltaResponseIsComplete = true })
}

// TestForeignResourcesAreNotKept: what nobody asked for, and what refused names there are, is
// bounded, however many ever new ones a server sends.
func TestForeignResourcesAreNotKept(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.next()
		p.send(change(rules.Cluster, "n", wrap("web", "1", eds("web", ""))))
		p.send(change(rules.Assignment, "n", wrap("web", "1", endpoints("web", "10.0.0.1"))))
		equal(t, "set", said(r.latest()), "web=10.0.0.1")
		p.next()
		for i := range 5000 {
			name := fmt.Sprint("foreign-", i)
			p.send(change(rules.Assignment, "n", wrap(name, "1", endpoints(name, "10.0.0.2"))))
			gone := removal(rules.Assignment, "n", name+"-gone")
			gone.ResourceErrors = []*discoveryv3.ResourceError{{ResourceName: &discoveryv3.ResourceName{Name: name + "-wrong"}, ErrorDetail: &statuspb.Status{Code: int32(codes.Internal)}}}
			p.send(gone)
			p.send(removal(rules.Cluster, "n", name))
			synctest.Wait()
			for len(p.requests) > 0 {
				p.next()
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, table := range []*table{r.clusters, r.assignments} {
			equal(t, "entries", len(table.entries), 1)
			equal(t, "agenda", len(table.agenda.Items), 0)
			if len(table.touched) > 1 {
				t.Errorf("%d names wait for the next set", len(table.touched))
			}
		}
	})
}

// TestAResetStreamIsNoAnswer: nothing is logged as connected before the server has said
// something or has let the stream stand.
func TestAResetStreamIsNoAnswer(t *testing.T) {
	for _, from := range []*corev3.ConfigSource{deltaSource, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one")} {
		var log bytes.Buffer
		scripted(t, from, func(t *testing.T, s *script, r *running) {
			if from == deltaSource {
				for range 3 {
					reconnect(t, s.delta).end(errEnough)
				}
				reconnect(t, s.delta)
			} else {
				for range 3 {
					reconnect(t, s.state).end(errEnough)
				}
				reconnect(t, s.state)
			}
			equal(t, "connected", strings.Count(log.String(), "upstream_connected"), 0)
			equal(t, "connected", r.Status().Types[0].Connected, false)
			time.Sleep(standsAfter)
			synctest.Wait()
			equal(t, "stands", r.Status().Types[0].Connected, true)
		}, func(o *Options) { o.Log = zerolog.New(zerolog.SyncWriter(&log)) })
	}
}

// TestARemovedClusterIsNoProblem: over streams of their own, the removal of its assignment
// may come first.
func TestARemovedClusterIsNoProblem(t *testing.T) {
	scripted(t, grpcSource(corev3.ApiConfigSource_DELTA_GRPC, "one"), func(t *testing.T, s *script, r *running) {
		c := next(t, s.delta)
		c.next()
		c.send(change(rules.Cluster, "n1", wrap("web", "1", eds("web", "")), wrap("api", "1", eds("api", ""))))
		e := next(t, s.delta)
		e.next()
		e.send(change(rules.Assignment, "n2", wrap("web", "1", endpoints("web", "10.0.0.1")), wrap("api", "1", endpoints("api", "10.0.0.2"))))
		equal(t, "set", said(r.latest()), "api=10.0.0.2 web=10.0.0.1")
		e.send(removal(rules.Assignment, "n3", "web"))
		r.nothing()
		c.send(removal(rules.Cluster, "n4", "web"))
		set := r.latest()
		equal(t, "set", said(set), "api=10.0.0.2")
		equal(t, "problems", len(set.Problems), 0)

		e.send(removal(rules.Assignment, "n5", "api"))
		time.Sleep(leaving / 2)
		r.nothing()
		e.send(change(rules.Assignment, "n6", wrap("api", "2", endpoints("api", "10.0.0.3"))))
		equal(t, "it is back", said(r.latest()), "api=10.0.0.3")
		e.send(removal(rules.Assignment, "n7", "api"))
		time.Sleep(leaving)
		equal(t, "it stays away", said(r.latest()), "api=none")
	})
}
