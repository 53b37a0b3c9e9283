package xds

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"hdsd/envoy/rules"
)

// atMost bounds what a source may have.
func atMost(clusters, endpoints int) func(*Options) {
	return func(o *Options) { o.MaxClusters, o.MaxEndpoints = clusters, endpoints }
}

// counted checks that what a source counts is what it has.
func counted(t *testing.T, s *Source) {
	t.Helper()
	var has amount
	shown := 0
	for _, of := range []*table{s.clusters, s.assignments} {
		for _, e := range of.entries {
			if of.subscribed(e) {
				has = has.plus(of.amount(e.name, e.good))
			}
			shown += len(e.refused.body())
		}
	}
	if s.stock.current != has || s.stock.shown != shown {
		t.Fatalf("counted %v and %d bytes to be shown, has %v and %d", s.stock.current, s.stock.shown, has, shown)
	}
}

// TestMostClusters: one more is refused alone, and taken when there is room.
func TestMostClusters(t *testing.T) {
	const full = "the management server has 2 clusters already, and no more are taken: have it send fewer, or raise limits.max_source_clusters in hdsd's configuration and restart it"
	t.Run("delta", func(t *testing.T) {
		scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
			p := next(t, s.delta)
			p.next()
			p.send(change(rules.Cluster, "n1", wrap("c", "1", inline("c", "10.0.0.3")), wrap("b", "1", inline("b", "10.0.0.2"))))
			equal(t, "accepted", p.next().GetErrorDetail() == nil, true)
			p.send(change(rules.Cluster, "n2", wrap("a", "1", inline("a", "10.0.0.1")), wrap("c", "2", inline("c", "10.0.0.7"))))
			equal(t, "detail", p.next().GetErrorDetail().GetMessage(), "1 of 2 resources refused: a ("+full+")")
			set := r.latest()
			equal(t, "set", said(set), "!a=none b=10.0.0.2 c=10.0.0.7")
			has(t, "problem", set.Problems[0].String(), "a: ", full)
			response := removal(rules.Cluster, "n3", "b")
			response.Resources = append(response.Resources, wrap("a", "2", inline("a", "10.0.0.1")))
			p.send(response)
			equal(t, "there is room", p.next().GetErrorDetail() == nil, true)
			equal(t, "set", said(r.latest()), "a=10.0.0.1 c=10.0.0.7")
			equal(t, "fullness", r.Status().Fullness, 1)
		}, atMost(2, 100))
	})
	t.Run("state of the world", func(t *testing.T) {
		scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(t *testing.T, s *script, r *running) {
			p := next(t, s.state)
			p.next()
			p.send(state(rules.Cluster, "1", "n1", inline("c"), inline("b"), inline("a"), inline("d")))
			has(t, "detail", p.next().GetErrorDetail().GetMessage(), "2 of 4 resources refused: c ("+full+"), d (")
			equal(t, "the first by name", said(r.latest()), "a= b= !c=none !d=none")
			p.send(state(rules.Cluster, "2", "n2", inline("c"), inline("a")))
			equal(t, "there is room", p.next().GetErrorDetail() == nil, true)
			equal(t, "set", said(r.latest()), "a= c=")
		}, atMost(2, 100))
	})
}

// TestMostEndpoints: what has more than there is room for stays what it was.
func TestMostEndpoints(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.next()
		p.send(change(rules.Cluster, "n1", wrap("db", "1", inline("db", "10.0.0.1", "10.0.0.2")), wrap("web", "1", eds("web", ""))))
		p.send(change(rules.Assignment, "n2", wrap("web", "1", endpoints("web", "10.0.0.3"))))
		equal(t, "set", said(r.latest()), "db=10.0.0.1,10.0.0.2 web=10.0.0.3")
		equal(t, "fullness", r.Status().Fullness, 0.75)
		for len(p.requests) > 0 {
			p.next()
		}
		p.send(change(rules.Assignment, "n3", wrap("web", "2", endpoints("web", "10.0.0.3", "10.0.0.4", "10.0.0.5"))))
		equal(t, "detail", p.next().GetErrorDetail().GetMessage(), "1 of 1 resources refused: web (with its 3 endpoints, the management server would have 5, and no more than 4 are taken: "+
			"have it send fewer, or raise limits.max_source_endpoints in hdsd's configuration and restart it)")
		equal(t, "set", said(r.latest()), "db=10.0.0.1,10.0.0.2 web=10.0.0.3")
		p.send(change(rules.Cluster, "n4", wrap("db", "2", inline("db", "10.0.0.1", "10.0.0.2", "10.0.0.6")), wrap("api", "1", inline("api", "10.0.0.8"))))
		has(t, "what is known comes first", p.next().GetErrorDetail().GetMessage(), "1 of 2 resources refused: api (")
		p.send(change(rules.Cluster, "n5", wrap("db", "3", inline("db", "10.0.0.1")), wrap("api", "1", inline("api", "10.0.0.8", "10.0.0.9"))))
		equal(t, "what shrinks makes room", p.next().GetErrorDetail() == nil, true)
		equal(t, "set", said(r.latest()), "api=10.0.0.8,10.0.0.9 db=10.0.0.1 web=10.0.0.3")
		p.send(change(rules.Cluster, "n5", wrap("api", "2", inline("api", "10.0.0.7", "10.0.0.8", "10.0.0.9")), wrap("db", "4", inline("db")), wrap("zoo", "1", inline("zoo", "10.0.0.6"))))
		has(t, "and before what grows", p.next().GetErrorDetail().GetMessage(), "1 of 3 resources refused: zoo (")
		p.send(removal(rules.Cluster, "n6", "web"))
		p.next()
		p.next() // it is given up
		p.send(change(rules.Cluster, "n7", wrap("last", "1", inline("last", "10.0.0.6"))))
		equal(t, "what is given up makes room", p.next().GetErrorDetail() == nil, true)
	}, atMost(10, 4))
}

// TestAbandonedResourcesDoNotCount: in the state of the world nothing is asked any more
// where nothing is wanted, so that what was given up stays, and may be taken again.
func TestAbandonedResourcesDoNotCount(t *testing.T) {
	scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(t *testing.T, s *script, r *running) {
		p := next(t, s.state)
		web := func(version string) {
			p.send(state(rules.Cluster, version, "n"+version, eds("web", "")))
		}
		web("1")
		p.send(state(rules.Assignment, "1", "n", endpoints("web", "10.0.0.3", "10.0.0.4", "10.0.0.5")))
		equal(t, "set", said(r.latest()), "web=10.0.0.3,10.0.0.4,10.0.0.5")
		p.send(state(rules.Cluster, "2", "n2"))
		equal(t, "nothing is there", said(r.latest()), "")
		equal(t, "fullness", r.Status().Fullness, 0)
		p.send(state(rules.Cluster, "2", "n2", inline("db", "10.0.0.6", "10.0.0.7")))
		equal(t, "there is room", said(r.latest()), "db=10.0.0.6,10.0.0.7")
		equal(t, "fullness", r.Status().Fullness, 0.5)
		counted(t, r.Source)
		web("3")
		equal(t, "again", said(r.latest()), "web=10.0.0.3,10.0.0.4,10.0.0.5")
		equal(t, "fullness", r.Status().Fullness, 0.75)
		counted(t, r.Source)
	}, atMost(10, 4))
}

// TestMostBytes: a source never has more than its snapshot may hold.
func TestMostBytes(t *testing.T) {
	s := primed(t, deltaSource)
	s.stock.limit.bytes = s.stock.current.bytes + 50
	refused := s.accept(s.clusters, &update{items: []item{{version: "1", body: pack(inline("new", "10.0.0.1"))}}})
	has(t, "refused", refused.String(), "new (with its ", " bytes, the management server would have ", "make several sources of it")
	counted(t, s)
}

// TestRestoreKeepsTheLimits: limits may be lower than before the restart.
func TestRestoreKeepsTheLimits(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		keep := func(path string) func(*Options) { return func(o *Options) { o.Snapshot = path } }(filepath.Join(t.TempDir(), "upstream.pb"))
		s := newScript(t)
		stop := n.serve("one", s.register)
		r := n.run(deltaSource, keep)
		next(t, s.delta).send(change(rules.Cluster, "n1", wrap("a", "1", inline("a")), wrap("b", "1", inline("b"))))
		synctest.Wait()
		r.stop()
		stop()
		r = n.run(deltaSource, keep, atMost(1, 0))
		defer r.stop()
		equal(t, "set", said(r.latest()), "a=")
		counted(t, r.Source)
	})
}

// TestRefusedNamesAreBounded: of those that were never good, so many are
// listed.
func TestRefusedNamesAreBounded(t *testing.T) {
	s := primed(t, deltaSource)
	for response := range 3 {
		u := &update{}
		for i := range maxRefused {
			u.items = append(u.items, item{name: fmt.Sprint(response, "-", i), wrong: "bad"})
		}
		refused := s.accept(s.clusters, u)
		equal(t, "named", refused.count, maxRefused)
	}
	equal(t, "listed", len(s.clusters.entries), 2+maxRefused)
	s.accept(s.clusters, &update{items: []item{{name: "web", wrong: "bad"}, {version: "1", body: pack(inline("good"))}}})
	equal(t, "what was good is refused, too", s.clusters.entries["web"].refused != nil, true)
	equal(t, "what is good is taken", s.clusters.entries["good"].good != nil, true)
	counted(t, s)
}

// TestRefusedNamesMakeRoom: those that are refused no more, for those that are now.
func TestRefusedNamesMakeRoom(t *testing.T) {
	s := primed(t, deltaSource)
	for response := range 2 {
		u := &update{full: true}
		for i := range maxRefused {
			u.items = append(u.items, item{name: fmt.Sprint(response, "-", i), wrong: "bad"})
		}
		s.accept(s.clusters, u)
		equal(t, "listed", len(s.clusters.entries), maxRefused)
		equal(t, "of this response", s.clusters.entries[fmt.Sprint(response, "-7")] != nil, true)
		counted(t, s)
	}
}

// TestRefusedBodiesAreBounded: of many, some are shown without.
func TestRefusedBodiesAreBounded(t *testing.T) {
	s := primed(t, deltaSource)
	body := pack(inline("other"))
	body.Value = append(body.GetValue(), make([]byte, maxShownBytes/2)...)
	for _, name := range []string{"a", "b", "c"} {
		s.accept(s.clusters, &update{items: []item{{name: name, body: body}}})
	}
	equal(t, "shown", s.clusters.entries["a"].refused.packed, body)
	equal(t, "not shown", s.clusters.entries["c"].refused.packed == nil, true)
	counted(t, s)
	s.accept(s.clusters, &update{removed: map[string]bool{"a": true}})
	s.accept(s.clusters, &update{items: []item{{name: "c", body: body}}})
	equal(t, "shown", s.clusters.entries["c"].refused.packed, body)
	counted(t, s)
}

// TestRefusedNamesAreForgotten: a server does not tell that something is gone which
// a new stream does not tell of.
func TestRefusedNamesAreForgotten(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.send(change(rules.Cluster, "n1", wrap("a", "1", inline("a")), wrap("b", "1", inline("other")), wrap("c", "1", inline("other"))))
		equal(t, "set", said(r.latest()), "a= !b=none !c=none")
		p.send(change(rules.Cluster, "n2", wrap("c", "2", inline("c"))))
		p.send(change(rules.Cluster, "n3", wrap("c", "3", inline("other"))))
		p.end(errEnough)
		equal(t, "while the server is away", said(r.latest()), "a= !b=none c=")
		p = reconnect(t, s.delta)
		p.send(change(rules.Cluster, "n1", wrap("d", "1", inline("other"))))
		equal(t, "what is refused now", said(r.latest()), "a= c= !d=none")
		p.send(&discoveryv3.DeltaDiscoveryResponse{TypeUrl: rules.Cluster, Nonce: "n2"})
		r.nothing()
	})
}
