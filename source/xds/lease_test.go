package xds

import (
	"bytes"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/envoy/rules"
)

// leased makes an assignment with a lease of ten seconds.
func leased(name string, hosts ...string) *endpointv3.ClusterLoadAssignment {
	a := endpoints(name, hosts...)
	a.Policy = &endpointv3.ClusterLoadAssignment_Policy{EndpointStaleAfter: durationpb.New(10 * time.Second)}
	return a
}

// speaker sends one resource, in whatever way a source asks.
type speaker func(typeURL, name string, m proto.Message)

// speak answers the streams of a source at "one".
func speak(s *script, delta bool) speaker {
	states, deltas := map[string]*statePeer{}, map[string]*deltaPeer{}
	return func(typeURL, name string, m proto.Message) {
		synctest.Wait()
		if delta {
			for len(s.delta) > 0 {
				p := <-s.delta
				deltas[p.next().GetTypeUrl()] = p
			}
			p := deltas[typeURL]
			if p == nil {
				p = deltas[rules.Cluster]
			}
			p.send(change(typeURL, "n", wrap(name, "1", m)))
			return
		}
		for len(s.state) > 0 {
			p := <-s.state
			states[p.next().GetTypeUrl()] = p
		}
		p := states[typeURL]
		if p == nil {
			p = states[rules.Cluster]
		}
		p.send(state(typeURL, "1", "n", m))
	}
}

// TestLeases: equal bytes renew the endpoint_stale_after of an assignment. One that is not
// renewed has no endpoints until it comes again.
func TestLeases(t *testing.T) {
	for name, from := range ways {
		t.Run(name, func(t *testing.T) {
			inNetwork(t, func(t *testing.T, n *network) {
				var log bytes.Buffer
				s, w := newScript(t), newWeb()
				defer n.serve("one", s.register)()
				defer n.serveHTTP("web", w)()
				r := n.run(from, func(o *Options) { o.Log = zerolog.New(zerolog.SyncWriter(&log)) })
				defer r.stop()
				say := speak(s, settingsOf(from).delta)
				if name == "REST" {
					say = func(typeURL, _ string, m proto.Message) {
						w.say(map[string]string{rules.Cluster: cds, rules.Assignment: edp}[typeURL], text(state(typeURL, "1", "n", m)))
						time.Sleep(1100 * time.Millisecond)
						synctest.Wait()
						w.say(edp, "304")
					}
				}
				say(rules.Cluster, "web", eds("web", ""))
				say(rules.Assignment, "web", leased("web", "10.0.0.1"))
				equal(t, "set", said(r.latest()), "web=10.0.0.1")
				time.Sleep(8 * time.Second)
				say(rules.Assignment, "web", leased("web", "10.0.0.1"))
				time.Sleep(8 * time.Second)
				r.nothing()
				time.Sleep(2 * time.Second)
				set := r.latest()
				equal(t, "stale", said(set), "web=")
				has(t, "problem", set.Problems[0].String(), `the lease of the ClusterLoadAssignment "web" (policy.endpoint_stale_after) is over`)
				has(t, "event", log.String(), `"event":"upstream_assignments_stale"`, `"names":["web"]`)
				equal(t, "marked", set.Clusters[0].Stale, true)
				time.Sleep(time.Minute)
				r.nothing()

				say(rules.Assignment, "web", leased("web", "10.0.0.1"))
				set = r.latest()
				equal(t, "back", said(set), "web=10.0.0.1")
				equal(t, "problems", len(set.Problems), 0)
				say(rules.Assignment, "web", endpoints("web", "10.0.0.1"))
				time.Sleep(time.Minute)
				equal(t, "no lease any more", said(r.latest()), "web=10.0.0.1")
			})
		})
	}
}

// TestLeasesOutsideEDS: a STATIC cluster's lease has no effect, as in an Envoy.
func TestLeasesOutsideEDS(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		c := inline("a")
		c.LoadAssignment = leased("a", "10.0.0.1")
		next(t, s.delta).send(change(rules.Cluster, "n1", wrap("a", "1", c)))
		equal(t, "set", said(r.latest()), "a=10.0.0.1")
		time.Sleep(time.Minute)
		r.nothing()
	})
}

// TestLeasesOverARestart: a restart prolongs nothing, and a new stream asks for what is stale.
func TestLeasesOverARestart(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		path := filepath.Join(t.TempDir(), "upstream.pb")
		keep := func(o *Options) { o.Snapshot = path }
		s := newScript(t)
		stop := n.serve("one", s.register)
		r := n.run(deltaSource, keep)
		p := next(t, s.delta)
		p.send(change(rules.Cluster, "n1", wrap("web", "1", eds("web", ""))))
		p.send(change(rules.Assignment, "n2", wrap("web", "1", leased("web", "10.0.0.1"))))
		r.latest()
		time.Sleep(6 * time.Second)
		p.send(change(rules.Cluster, "n3", wrap("db", "1", inline("db", "10.0.0.9")))) // writes the snapshot again
		synctest.Wait()
		r.stop()
		stop()

		r = n.run(deltaSource, keep)
		equal(t, "set", said(r.latest()), "db=10.0.0.9 web=10.0.0.1")
		time.Sleep(4 * time.Second)
		equal(t, "stale", said(r.latest()), "db=10.0.0.9 web=")
		r.stop()

		defer n.serve("one", s.register)()
		r = n.run(deltaSource, keep)
		defer r.stop()
		equal(t, "stale at once", said(r.latest()), "db=10.0.0.9 web=")
		p = reconnect(t, s.delta)
		equal(t, "clusters", len(p.next().GetInitialResourceVersions()), 2)
		equal(t, "what is stale has to come again", len(p.next().GetInitialResourceVersions()), 0)
	})
}
