package xds

import (
	"fmt"
	"testing"
	"time"

	"hdsd/source/kind"
)

// TestWant: assignments are asked for on behalf of others, beside those that
// clusters of the server itself have.
func TestWant(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.next()
		p.send(change(kind.Cluster, "n1", wrap("web", "1", eds("web", "svc")), wrap("db", "1", inline("db", "10.0.0.9"))))
		p.next()
		equal(t, "asked for", fmt.Sprint(p.next().GetResourceNamesSubscribe()), "[svc]")
		p.send(change(kind.Assignment, "n2", wrap("svc", "1", endpoints("svc", "10.0.0.1"))))
		equal(t, "set", said(r.latest()), "db=10.0.0.9 web=10.0.0.1")
		p.next()

		r.Want([]string{"a", "db", "none", "svc"})
		equal(t, "asked for, too", fmt.Sprint(p.next().GetResourceNamesSubscribe()), "[a db none]")
		p.send(change(kind.Assignment, "n3", wrap("a", "1", endpoints("a", "10.0.0.2")), wrap("db", "1", endpoints("db", "10.0.0.3"))))
		p.send(removal(kind.Assignment, "n4", "none"))
		first := r.latest()
		equal(t, "beside clusters, and not in their place", said(first), "a=10.0.0.2 db=10.0.0.9 web=10.0.0.1")
		p.send(change(kind.Cluster, "n5", wrap("new", "1", inline("new"))))
		set := r.latest()
		equal(t, "the pointer stays", set.Clusters[0], first.Clusters[0])
		p.send(removal(kind.Cluster, "n6", "web"))
		equal(t, "others still want it", said(r.latest()), "a=10.0.0.2 db=10.0.0.9 new= svc=10.0.0.1")
		r.Want([]string{"a"})
		equal(t, "no longer wanted", said(r.latest()), "a=10.0.0.2 db=10.0.0.9 new=")
		equal(t, "known", len(r.Status().Types[1].Resources), 1)
	})
}

// TestAssignmentsAlone: a server may say nothing of clusters, ever.
func TestAssignmentsAlone(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		r.Want([]string{"svc"})
		p := next(t, s.delta)
		time.Sleep(14 * time.Second)
		p.send(change(kind.Assignment, "n1", wrap("svc", "1", endpoints("svc", "10.0.0.1"))))
		r.nothing() // there may be clusters
		time.Sleep(time.Second)
		set := r.latest()
		equal(t, "set", said(set), "svc=10.0.0.1")
		equal(t, "problems", len(set.Problems), 0)
		equal(t, "all is said", set.Answered(), true)
	})
}
