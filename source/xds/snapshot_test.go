package xds

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/envoy/rules"
)

// TestSnapshot: a restart while the server is away goes on with what was known.
func TestSnapshot(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		path := filepath.Join(t.TempDir(), "upstream.pb")
		keep := func(o *Options) { o.Snapshot = path }
		s := newScript(t)
		stop := n.serve("one", s.register)
		r := n.run(deltaSource, keep)
		p := next(t, s.delta)
		p.send(change(rules.Cluster, "n1", wrap("web", "7", eds("web", "svc")), wrap("bad", "1", inline("other"))))
		mortal := wrap("svc", "8", endpoints("svc", "10.0.0.1"))
		mortal.Ttl = durationpb.New(48 * time.Hour)
		p.send(change(rules.Assignment, "n2", mortal))
		r.latest()
		if _, err := os.Stat(path); err == nil {
			t.Error("written at once")
		}
		time.Sleep(snapshotEvery)
		synctest.Wait()
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		p.send(change(rules.Cluster, "n3", wrap("db", "9", inline("db", "10.0.0.2"))))
		equal(t, "set", said(r.latest()), "!bad=none db=10.0.0.2 web=10.0.0.1")
		r.stop()
		stop()

		written, contact := time.Now(), time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, contact, contact); err != nil {
			t.Fatal(err)
		}
		r = n.run(deltaSource, keep)
		set := r.latest()
		equal(t, "set", said(set), "db=10.0.0.2 web=10.0.0.1")
		equal(t, "problems", len(set.Problems), 0)
		equal(t, "there may be more", set.Awaited && !set.Unread, true)
		equal(t, "age", r.Status().Types[0].Resources[0].LastUpdated.Equal(written), true)
		for _, status := range r.Status().Types {
			equal(t, "last answer", status.LastUpdate.Equal(written) && status.LastAck.Equal(written), true)
			equal(t, "connected", status.Connected, false)
			equal(t, "away since", status.Since.Equal(contact), true)
		}
		time.Sleep(15 * time.Second)
		set = r.latest()
		equal(t, "given up", !set.Awaited && set.Unread, true)
		has(t, "problem", set.Problems[0].String(), "the management server has not answered since the start: its clusters are those of "+contact.UTC().Format(time.RFC3339))

		other := n.run(grpcSource(corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC, "two"), keep)
		other.nothing() // of other servers
		other.stop()

		s = newScript(t)
		stop = n.serve("one", s.register)
		p = reconnect(t, s.delta)
		equal(t, "versions", fmt.Sprint(p.next().GetInitialResourceVersions()), "map[db:9 web:7]")
		equal(t, "versions", fmt.Sprint(p.next().GetInitialResourceVersions()), "map[svc:8]")
		p.send(change(rules.Cluster, "n0", wrap("new", "1", eds("new", ""))))
		equal(t, "a cluster waits for its endpoints", r.latest().Awaited, true)
		p.send(change(rules.Assignment, "n0", wrap("new", "1", endpoints("new", "10.0.0.3"))))
		equal(t, "all is said", r.latest().Answered(), true)
		p.send(removal(rules.Cluster, "n1", "db", "new"))
		set = r.latest()
		equal(t, "set", said(set), "web=10.0.0.1")
		equal(t, "problems", len(set.Problems), 0)
		time.Sleep(48 * time.Hour)
		equal(t, "times to live go on", said(r.latest()), "web=none")
		r.stop()
		stop()
		left, _ := filepath.Glob(path + "*")
		equal(t, "files left", strings.Join(left, " "), path)
	})
}

// TestSnapshotWithoutEndpoints: those of a restored cluster have their own time.
func TestSnapshotWithoutEndpoints(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		path := filepath.Join(t.TempDir(), "upstream.pb")
		keep := func(o *Options) { o.Snapshot = path }
		s := newScript(t)
		stop := n.serve("one", s.register)
		defer stop()
		r := n.run(deltaSource, keep)
		next(t, s.delta).send(change(rules.Cluster, "n1", wrap("web", "1", eds("web", ""))))
		synctest.Wait()
		r.stop()
		written := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
		r = n.run(deltaSource, keep)
		defer r.stop()
		r.nothing()
		next(t, s.delta).send(change(rules.Assignment, "n2", wrap("web", "1", endpoints("web", "10.0.0.1"))))
		equal(t, "set", said(r.latest()), "web=10.0.0.1")
	})
}

// TestAgeOverARestart is since the server was there last, not since it said
// something that was new.
func TestAgeOverARestart(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		path := filepath.Join(t.TempDir(), "upstream.pb")
		keep := func(o *Options) { o.Snapshot = path }
		since := func(what string, want time.Time, within time.Duration) {
			t.Helper()
			about, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := about.ModTime(); got.After(want) || got.Before(want.Add(-within)) {
				t.Errorf("%s: got %v, want %v", what, got, want)
			}
		}
		s, from := newScript(t), grpcSource(corev3.ApiConfigSource_DELTA_GRPC, "one") // of which endpoints are asked for apart, here none
		stop := n.serve("one", s.register)
		r := n.run(from, keep)
		p := next(t, s.delta)
		said := time.Now()
		mortal := wrap("db", "1", inline("db", "10.0.0.1"))
		mortal.Ttl = durationpb.New(time.Hour)
		p.send(change(rules.Cluster, "n1", mortal))
		for range 5 {
			time.Sleep(100 * time.Second)
			since("at any time", time.Now(), contactEvery+2*snapshotEvery)
		}
		r.stop()
		since("after a stop", time.Now(), 0)

		r = n.run(from, keep)
		reconnect(t, s.delta)
		time.Sleep(30 * time.Second)
		stop()
		left := time.Now()
		time.Sleep(10 * time.Minute)
		since("while the server is away", left, contactEvery)
		r.stop()
		since("after a stop, too", left, 0)

		r = n.run(from, keep)
		time.Sleep(10 * time.Minute)
		r.stop()
		since("it was not there at all", left, 0)

		r = n.run(from, keep)
		defer r.stop()
		time.Sleep(time.Second)
		status := r.Status().Types[0]
		equal(t, "away since", status.Since.Equal(left), true)
		equal(t, "said last", status.LastAck.Equal(status.Resources[0].LastUpdated) && status.LastAck.Sub(said) <= snapshotEvery, true)
		time.Sleep(time.Until(said.Add(time.Hour)) - time.Second)
		equal(t, "times to live go on", len(r.Status().Types[0].Resources), 1)
		time.Sleep(2 * time.Second)
		equal(t, "and end", len(r.Status().Types[0].Resources), 0)
		since("though what is left was written", left, 0)
	})
}

// TestBrokenSnapshot: it is as if there were none.
func TestBrokenSnapshot(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		path := filepath.Join(t.TempDir(), "upstream.pb")
		if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := n.run(deltaSource, func(o *Options) { o.Snapshot = path })
		time.Sleep(15 * time.Second)
		equal(t, "set", said(r.latest()), "unread")
		r.stop()
		data, _ := os.ReadFile(path)
		equal(t, "nothing is written over it", string(data), "nonsense")
	})
}
