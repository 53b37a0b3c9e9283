package xds

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"

	"hdsd/envoy/rules"
)

// TestWant: assignments are asked for on behalf of others, beside those that
// clusters of the server itself have.
func TestWant(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.next()
		p.send(change(rules.Cluster, "n1", wrap("web", "1", eds("web", "svc")), wrap("db", "1", inline("db", "10.0.0.9"))))
		p.next()
		equal(t, "asked for", fmt.Sprint(p.next().GetResourceNamesSubscribe()), "[svc]")
		p.send(change(rules.Assignment, "n2", wrap("svc", "1", endpoints("svc", "10.0.0.1"))))
		equal(t, "set", said(r.latest()), "db=10.0.0.9 web=10.0.0.1")
		p.next()

		r.Want([]string{"a", "db", "none", "svc"})
		equal(t, "asked for, too", fmt.Sprint(p.next().GetResourceNamesSubscribe()), "[a db none]")
		p.send(change(rules.Assignment, "n3", wrap("a", "1", endpoints("a", "10.0.0.2")), wrap("db", "1", endpoints("db", "10.0.0.3"))))
		p.send(removal(rules.Assignment, "n4", "none"))
		first := r.latest()
		equal(t, "beside clusters, and not in their place", said(first), "a=10.0.0.2 db=10.0.0.9 web=10.0.0.1")
		p.send(change(rules.Cluster, "n5", wrap("new", "1", inline("new"))))
		set := r.latest()
		equal(t, "the pointer stays", set.Clusters[0], first.Clusters[0])
		p.send(removal(rules.Cluster, "n6", "web"))
		equal(t, "others still want it", said(r.latest()), "a=10.0.0.2 db=10.0.0.9 new= svc=10.0.0.1")
		r.Want([]string{"a"})
		equal(t, "no longer wanted", said(r.latest()), "a=10.0.0.2 db=10.0.0.9 new=")
		equal(t, "known", len(r.Status().Types[1].Resources), 1)
	})
}

// TestWantOfRefusedAssignments: those who want it learn that there is one, and that a
// mistake hides it; one that was good before stays.
func TestWantOfRefusedAssignments(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		r.Want([]string{"svc"})
		p := next(t, s.delta)
		p.send(change(rules.Cluster, "n1", wrap("db", "1", inline("db"))))
		p.send(change(rules.Assignment, "n1", wrap("svc", "1", endpoints("other", "10.0.0.1"))))
		set := r.latest()
		equal(t, "set", said(set), "db= !svc=none")
		equal(t, "it is alone", set.Clusters[1].Lone, true)
		equal(t, "pending", r.Pending(), false)
		p.send(change(rules.Assignment, "n2", wrap("svc", "2", endpoints("svc", "10.0.0.1"))))
		equal(t, "set", said(r.latest()), "db= svc=10.0.0.1")
		p.send(change(rules.Assignment, "n3", wrap("svc", "3", endpoints("other", "10.0.0.2"))))
		p.send(change(rules.Cluster, "n3", wrap("new", "1", inline("new"))))
		equal(t, "set", said(r.latest()), "db= new= svc=10.0.0.1")
	})
}

// TestAssignmentsAlone: a server may say nothing of clusters, ever.
func TestAssignmentsAlone(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		r.Want([]string{"svc"})
		p := next(t, s.delta)
		time.Sleep(14 * time.Second)
		p.send(change(rules.Assignment, "n1", wrap("svc", "1", endpoints("svc", "10.0.0.1"))))
		r.nothing() // there may be clusters
		time.Sleep(time.Second)
		set := r.latest()
		equal(t, "set", said(set), "svc=10.0.0.1")
		equal(t, "problems", len(set.Problems), 0)
		equal(t, "all is said", set.Answered(), true)
	})
}

// TestAssignmentsAloneAfterARestart: it is no problem that nothing is said of
// clusters where there were none.
func TestAssignmentsAloneAfterARestart(t *testing.T) {
	keep := func(path string) func(*Options) { return func(o *Options) { o.Snapshot = path } }(filepath.Join(t.TempDir(), "upstream.pb"))
	for range 2 {
		scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
			r.Want([]string{"svc"})
			next(t, s.delta).send(change(rules.Assignment, "n1", wrap("svc", "1", endpoints("svc", "10.0.0.1"))))
			time.Sleep(16 * time.Second)
			set := r.latest()
			equal(t, "set", said(set), "svc=10.0.0.1")
			equal(t, "problems", len(set.Problems), 0)
		}, keep)
	}
}

// TestWantAfterARestart: what the server said before the start is there for those
// who want it only later, and who want it of a server that is given up do not wait.
func TestWantAfterARestart(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		keep := func(path string) func(*Options) { return func(o *Options) { o.Snapshot = path } }(filepath.Join(t.TempDir(), "upstream.pb"))
		s := newScript(t)
		stop := n.serve("one", s.register)
		r := n.run(deltaSource, keep)
		r.Want([]string{"svc", "more"})
		p := next(t, s.delta)
		p.send(change(rules.Cluster, "n1", wrap("db", "1", inline("db", "10.0.0.9"))))
		p.send(change(rules.Assignment, "n1", wrap("svc", "1", endpoints("svc", "10.0.0.1")), wrap("more", "1", endpoints("more", "10.0.0.2"))))
		synctest.Wait()
		r.stop()
		stop()

		r = n.run(deltaSource, keep)
		defer r.stop()
		equal(t, "set", said(r.latest()), "db=10.0.0.9")
		r.Want([]string{"svc"})
		equal(t, "asked", r.Pending(), true)
		equal(t, "set", said(r.latest()), "db=10.0.0.9 svc=10.0.0.1")
		equal(t, "there", r.Pending(), false)
		time.Sleep(20 * time.Second)
		equal(t, "set", said(r.latest()), "db=10.0.0.9 svc=10.0.0.1 unread")
		r.Want([]string{"svc", "none"})
		equal(t, "set", said(r.latest()), "db=10.0.0.9 svc=10.0.0.1 unread")
		equal(t, "not waited for", r.Pending(), false)

		defer n.serve("one", s.register)()
		p = reconnect(t, s.delta)
		p.send(change(rules.Cluster, "n1"))
		p.send(change(rules.Assignment, "n2"))
		synctest.Wait()
		r.Want([]string{"svc", "more"})
		time.Sleep(time.Second)
		equal(t, "it will say", said(r.latest()), "db=10.0.0.9 svc=10.0.0.1")
		counted(t, r.Source)
	})
}

// endpointsAlone serves assignments under a name, and has no service for
// clusters.
func (n *network) endpointsAlone(name string) (s *script, stop func()) {
	s = newScript(n.t)
	return s, n.serve(name, func(r grpc.ServiceRegistrar) {
		endpointservice.RegisterEndpointDiscoveryServiceServer(r, &scriptedEndpoints{script: s})
	})
}

// TestUnservedClustersAreNotAwaited: nobody waits for clusters of a server that says
// that it does not serve them.
func TestUnservedClustersAreNotAwaited(t *testing.T) {
	alone := change(rules.Assignment, "n1", wrap("svc", "1", endpoints("svc", "10.0.0.1")))
	t.Run("gRPC", func(t *testing.T) {
		inNetwork(t, func(t *testing.T, n *network) {
			s, stop := n.endpointsAlone("one")
			defer stop()
			var log bytes.Buffer
			path := filepath.Join(t.TempDir(), "upstream.pb")
			r := n.run(grpcSource(corev3.ApiConfigSource_DELTA_GRPC, "one"), func(o *Options) {
				o.Log, o.Snapshot = zerolog.New(zerolog.SyncWriter(&log)), path
			})
			r.Want([]string{"svc", "other"})
			p := next(t, s.delta)
			r.nothing() // it has to say something
			p.send(alone)
			r.nothing() // of each
			p.send(removal(rules.Assignment, "n2", "other"))
			set := r.latest()
			equal(t, "set", said(set), "svc=10.0.0.1")
			equal(t, "all is said", set.Answered() && len(set.Problems) == 0, true)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			equal(t, "it answers", r.Status().Types[0].Connected, true)
			for text, times := range map[string]int{"upstream_lost": 1, "upstream_connected": 1} {
				equal(t, "how often there is "+text, strings.Count(log.String(), text), times)
			}
			if about, err := os.Stat(path); err != nil || time.Since(about.ModTime()) > contactEvery+2*snapshotEvery {
				t.Errorf("what it said seems to be of %v, %v", about.ModTime(), err)
			}
			stop()
			all := newScript(t)
			defer n.serve("one", all.register)()
			defer r.stop()
			p = reconnect(t, all.delta)
			if p.next().GetTypeUrl() != rules.Cluster {
				p = reconnect(t, all.delta)
			}
			p.send(change(rules.Cluster, "n1", wrap("db", "1", inline("db", "10.0.0.9"))))
			equal(t, "set", said(r.latest()), "db=10.0.0.9 svc=10.0.0.1")
			equal(t, "it answers", r.Status().Types[0].Connected, true)
		})
	})
	t.Run("REST", func(t *testing.T) {
		inNetwork(t, func(t *testing.T, n *network) {
			w := newWeb()
			defer n.serveHTTP("web", w)()
			w.say(cds, "404")
			w.say(edp, `{"version_info":"e1","resources":[`+jsonEndpoints("10.0.0.1")+`]}`)
			r := n.run(restSource("http://web"))
			defer r.stop()
			r.Want([]string{"web"})
			set := r.latest()
			equal(t, "set", said(set), "web=10.0.0.1")
			equal(t, "all is said", set.Answered(), true)
			w.say(edp, "404")
			time.Sleep(time.Minute)
			equal(t, "it does not answer", r.Status().Types[1].Connected, false)
			w.say(edp, "304")
			time.Sleep(time.Minute)
			equal(t, "it answers", r.Status().Types[1].Connected, true)
		})
	})
	t.Run("not by one of two", func(t *testing.T) {
		inNetwork(t, func(t *testing.T, n *network) {
			s, stop := n.endpointsAlone("one")
			defer stop()
			r := n.run(grpcSource(corev3.ApiConfigSource_DELTA_GRPC, "one", "two"))
			defer r.stop()
			r.Want([]string{"svc"})
			next(t, s.delta).send(alone)
			time.Sleep(14 * time.Second)
			r.nothing()
			time.Sleep(time.Second)
			equal(t, "given up", r.latest().Answered(), true)
		})
	})
	t.Run("not where there were some", func(t *testing.T) {
		inNetwork(t, func(t *testing.T, n *network) {
			from := grpcSource(corev3.ApiConfigSource_DELTA_GRPC, "one")
			keep := func(path string) func(*Options) { return func(o *Options) { o.Snapshot = path } }(filepath.Join(t.TempDir(), "upstream.pb"))
			all := newScript(t)
			stop := n.serve("one", all.register)
			r := n.run(from, keep)
			next(t, all.delta).send(change(rules.Cluster, "n1", wrap("db", "1", inline("db", "10.0.0.9"))))
			synctest.Wait()
			r.stop()
			stop()

			s, stop := n.endpointsAlone("one")
			defer stop()
			r = n.run(from, keep)
			defer r.stop()
			r.Want([]string{"svc"})
			next(t, s.delta).send(alone)
			set := r.latest()
			equal(t, "set", said(set), "db=10.0.0.9 svc=10.0.0.1")
			equal(t, "it is waited for", set.Awaited, true)
		})
	})
	t.Run("not where it says nothing", func(t *testing.T) {
		inNetwork(t, func(t *testing.T, n *network) {
			_, stop := n.endpointsAlone("one")
			defer stop()
			r := n.run(grpcSource(corev3.ApiConfigSource_DELTA_GRPC, "one"))
			defer r.stop()
			time.Sleep(14 * time.Second)
			r.nothing()
			time.Sleep(time.Second)
			equal(t, "set", said(r.latest()), "unread")
		})
	})
	t.Run("not on one stream for all", func(t *testing.T) {
		inNetwork(t, func(t *testing.T, n *network) {
			s := newScript(t)
			stop := n.serve("one", s.register)
			r := n.run(deltaSource)
			defer r.stop()
			r.Want([]string{"svc"})
			next(t, s.delta).send(alone)
			synctest.Wait()
			stop()
			_, stop = n.endpointsAlone("one")
			defer stop()
			time.Sleep(14 * time.Second)
			r.nothing()
		})
	})
}

// TestPending: others learn when there is an answer about what they want, also
// where it changes nothing.
func TestPending(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		r.Want([]string{"a"})
		p := next(t, s.delta)
		p.send(change(rules.Cluster, "n1", wrap("db", "1", inline("db", "10.0.0.9"))))
		r.nothing()
		p.send(change(rules.Assignment, "n2", wrap("a", "1", endpoints("a", "10.0.0.1"))))
		equal(t, "set", said(r.latest()), "a=10.0.0.1 db=10.0.0.9")
		equal(t, "answered", r.Pending(), false)

		r.Want([]string{"a"})
		equal(t, "nothing new", r.Pending(), false)
		r.nothing()
		for _, name := range []string{"gone", "late"} {
			r.Want([]string{"a", name})
			equal(t, "asked", r.Pending(), true)
			r.nothing()
			if name == "gone" {
				p.send(removal(rules.Assignment, "n3", name))
			} else {
				time.Sleep(15 * time.Second)
			}
			equal(t, name, said(r.latest()), "a=10.0.0.1 db=10.0.0.9")
			equal(t, "answered", r.Pending(), false)
			r.nothing()
		}
	})
}
