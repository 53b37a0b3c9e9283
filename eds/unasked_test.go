package eds

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"hdsd/eds/poll"
	"hdsd/peer/access"
	"hdsd/publish"
)

// unaskedBench is a bench with a log and metrics, and with clusters to take.
type unaskedBench struct {
	*bench
	log      *bytes.Buffer
	registry *prometheus.Registry
}

func inUnaskedBubble(t *testing.T, test func(b *unaskedBench)) {
	t.Helper()
	b := &unaskedBench{log: new(bytes.Buffer), registry: prometheus.NewRegistry()}
	inOneBubble(t, Options{Log: zerolog.New(b.log).Level(zerolog.InfoLevel), Metrics: b.registry}, func(_ *testing.T, in *bench) {
		b.bench = in
		b.server.Update(publish.Update{
			Clusters: append(clusters("a", "1", "b", "1"), publish.Cluster{Message: &clusterv3.Cluster{Name: "as it came"}},
				publish.Cluster{Message: publish.TakeOver(&clusterv3.Cluster{Name: "by EDS, not checked"}, publish.ByADS())}),
			Assignments: []publish.Assignment{assignment("a", 0, 1), assignment("b", 1, 1)},
		})
		test(b)
	})
}

// shows checks what clients, log and metrics show when the server is idle.
func (b *unaskedBench) shows(when string, unasked, begun, ended int) {
	b.t.Helper()
	synctest.Wait()
	got := 0
	for _, c := range b.server.Clients(nil) {
		got += c.Unasked
	}
	equal(b.t, when+": unasked", got, unasked)
	equal(b.t, when+": lines that it begins", strings.Count(b.log.String(), `"event":"assignments_not_asked","node":"dp-1"`), begun)
	equal(b.t, when+": lines that it ends", strings.Count(b.log.String(), `"event":"assignments_asked","node":"dp-1"`), ended)
	want := fmt.Sprintf("# HELP hdsd_xds_assignments_not_asked Assignments of checked clusters that data planes took 30 s ago or longer, and have not asked for.\n"+
		"# TYPE hdsd_xds_assignments_not_asked gauge\nhdsd_xds_assignments_not_asked %d\n", unasked)
	if err := testutil.GatherAndCompare(b.registry, strings.NewReader(want), "hdsd_xds_assignments_not_asked"); err != nil {
		b.t.Error(when, err)
	}
}

// TestUnaskedAssignmentsAreShown half a minute after a client took checked clusters, by
// each kind of stream, until it asks or leaves.
func TestUnaskedAssignmentsAreShown(t *testing.T) {
	inUnaskedBubble(t, func(b *unaskedBench) {
		d := b.delta()
		d.send(subscribe(resourcev3.ClusterType, "*"))
		r := d.next()
		time.Sleep(time.Hour)
		b.shows("while it has not taken them", 0, 0, 0)
		d.send(ack(r))
		time.Sleep(askWithin - time.Second)
		b.shows("in time", 0, 0, 0)
		time.Sleep(time.Second)
		b.shows("too late", 2, 1, 0)
		time.Sleep(time.Hour)
		b.shows("once", 2, 1, 0)

		d.send(subscribe(resourcev3.EndpointType, "a"))
		d.send(ack(d.next()))
		time.Sleep(time.Second)
		b.shows("it asks for one", 1, 1, 0)
		b.remove("b")
		d.send(ack(d.next()))
		time.Sleep(time.Second)
		b.shows("the other goes", 0, 1, 1)
		b.put("c")
		d.send(ack(d.next()))
		time.Sleep(askWithin)
		b.shows("another comes", 1, 2, 1)
		d.send(subscribe(resourcev3.EndpointType, "*"))
		nextAll(d, "[a=UN c=UN]")
		time.Sleep(time.Second)
		b.shows("it asks for everything", 0, 2, 2)
		d.cancel()
	})
	inUnaskedBubble(t, func(b *unaskedBench) {
		s := b.state()
		s.send(want(resourcev3.ClusterType))
		s.send(ackState(s.next()))
		time.Sleep(askWithin)
		b.shows("state of the world", 2, 1, 0)
		s.cancel()
		b.shows("it has left", 0, 1, 0)
	})
}

// TestAClusterThatIsCheckedAgainNeedsItsAssignmentAgain: hdsd did not check the cluster at
// the time of the check for unasked assignments.
func TestAClusterThatIsCheckedAgainNeedsItsAssignmentAgain(t *testing.T) {
	unchecked := publish.Update{Clusters: []publish.Cluster{{Message: publish.TakeOver(&clusterv3.Cluster{Name: "a"}, publish.ByADS())}}}
	for _, after := range []time.Duration{time.Second, askWithin + time.Second} { // before it is looked at, and after it
		inUnaskedBubble(t, func(b *unaskedBench) {
			b.remove("b")
			d := b.delta()
			d.send(subscribe(resourcev3.ClusterType, "*"))
			d.send(ack(d.next()))
			time.Sleep(after)
			b.server.Update(unchecked)
			d.send(ack(d.next()))
			time.Sleep(2 * askWithin)
			begun := int(after / askWithin)
			b.shows("it is not checked", 0, begun, begun)
			b.server.Update(publish.Update{Clusters: clusters("a", "2")})
			d.send(ack(d.next()))
			time.Sleep(askWithin)
			b.shows("it is checked again", 1, begun+1, begun)
			d.cancel()
		})
	}
	inUnaskedBubble(t, func(b *unaskedBench) {
		b.remove("b")
		d := b.delta()
		d.send(subscribe(resourcev3.ClusterType, "*"))
		d.send(ack(d.next()))
		time.Sleep(time.Second)
		b.server.Update(unchecked)
		r := d.next()
		time.Sleep(askWithin)
		b.server.Update(publish.Update{Clusters: clusters("a", "1")})
		d.send(ack(r))
		d.send(ack(d.next()))
		time.Sleep(2 * askWithin)
		b.shows("it is checked again when it learns that it was not", 1, 1, 0)
		d.cancel()
	})
}

// TestAssignmentsAskedForElsewhereAreNotMissing: on another stream of the node, by polls,
// or after a reconnect with what the client had.
func TestAssignmentsAskedForElsewhereAreNotMissing(t *testing.T) {
	for name, asks := range map[string]func(b *unaskedBench) (stop func()){
		"another stream": func(b *unaskedBench) func() {
			all := []*statePeer{}
			for _, assignment := range []string{"a", "b"} {
				p := newPeer(b.bench, endpointservice.NewEndpointDiscoveryServiceClient(b.conn).StreamEndpoints)
				p.send(want(resourcev3.EndpointType, assignment))
				p.next()
				all = append(all, p)
			}
			return func() { all[0].cancel(); all[1].cancel() }
		},
		"polls": func(b *unaskedBench) func() {
			for _, assignment := range []string{"a", "b"} {
				pollREST(b.t, b.server, EndpointsPath, want(resourcev3.EndpointType, assignment))
			}
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inUnaskedBubble(t, func(b *unaskedBench) {
				d := b.delta()
				d.send(subscribe(resourcev3.ClusterType, "*"))
				d.send(ack(d.next()))
				synctest.Wait()
				stop := asks(b)
				time.Sleep(askWithin)
				b.shows("it asks elsewhere", 0, 0, 0)
				stop()
				d.cancel()
			})
			inUnaskedBubble(t, func(b *unaskedBench) {
				d := b.delta()
				d.send(subscribe(resourcev3.ClusterType, "*"))
				d.send(ack(d.next()))
				time.Sleep(askWithin)
				b.shows("too late", 2, 1, 0)
				stop := asks(b)
				time.Sleep(time.Second)
				b.shows("it asks at last", 0, 1, 1)
				stop()
				d.cancel()
			})
		})
	}
	inUnaskedBubble(t, func(b *unaskedBench) {
		d := b.delta()
		d.send(subscribe(resourcev3.ClusterType, "*"))
		r := d.next()
		d.send(ack(r))
		d.cancel()
		d.ends()
		d = b.delta()
		m := subscribe(resourcev3.ClusterType, "*")
		m.InitialResourceVersions = versions(r)
		d.send(m)
		time.Sleep(askWithin)
		b.shows("it comes back and does not ask", 2, 1, 0)
		d.cancel()
		d.ends()
		d = b.delta()
		d.send(m)
		d.send(subscribe(resourcev3.EndpointType, "a", "b"))
		d.next()
		time.Sleep(askWithin)
		b.shows("it comes back and asks", 0, 1, 0)
		d.cancel()
	})
}

// TestUnaskedAssignmentsOfPollsAreShown: the same for clusters that are polled.
func TestUnaskedAssignmentsOfPollsAreShown(t *testing.T) {
	inUnaskedBubble(t, func(b *unaskedBench) {
		_, r := pollREST(t, b.server, ClustersPath, want(resourcev3.ClusterType))
		has := func() {
			code, _ := pollREST(t, b.server, ClustersPath, &discoveryv3.DiscoveryRequest{Node: node("dp-1"), VersionInfo: r.GetVersionInfo()})
			equal(t, "code", code, 304)
		}
		has()
		time.Sleep(askWithin - time.Second)
		has()
		b.shows("in time", 0, 0, 0)
		time.Sleep(time.Second)
		has()
		b.shows("too late", 2, 1, 0)
		pollREST(t, b.server, EndpointsPath, want(resourcev3.EndpointType, "a", "b"))
		time.Sleep(askWithin)
		has()
		b.shows("it asks at last", 0, 1, 1)
		time.Sleep(askWithin)
		has()
		time.Sleep(poll.Stays)
		b.shows("it has left", 0, 1, 1)
	})
}

// TestUnsubscribedClustersNeedNoAssignment: only those that the client still has, however often it
// took others and unsubscribed.
func TestUnsubscribedClustersNeedNoAssignment(t *testing.T) {
	inUnaskedBubble(t, func(b *unaskedBench) {
		d := b.delta()
		d.send(subscribe(resourcev3.ClusterType, "a"))
		d.send(ack(d.next()))
		for range 2000 {
			d.send(subscribe(resourcev3.ClusterType, "b"))
			d.send(ack(d.next()))
			d.send(unsubscribe(resourcev3.ClusterType, "b"))
		}
		time.Sleep(askWithin)
		b.shows("of those that it has", 1, 1, 0)
		d.cancel()
	})
}

// moments records the times at which a log has lines.
type moments struct{ times map[time.Time]bool }

func (m *moments) Write(line []byte) (int, error) {
	m.times[time.Now()] = true
	return len(line), nil
}

// TestCountsForTheLogAreRare, although clients take clusters one after the other. Each client is
// in the log at last.
func TestCountsForTheLogAreRare(t *testing.T) {
	log := &moments{map[time.Time]bool{}}
	inOneBubble(t, Options{Log: zerolog.New(log).Level(zerolog.WarnLevel)}, func(t *testing.T, b *bench) {
		b.server.Update(publish.Update{Clusters: clusters("a", "1"), Assignments: []publish.Assignment{assignment("a", 0, 1)}})
		for i := range 100 {
			d := b.delta()
			defer d.cancel()
			m := subscribe(resourcev3.ClusterType, "a")
			m.Node = node(fmt.Sprint("dp-", i))
			d.send(m)
			d.send(ack(d.next()))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(askWithin + time.Second)
		equal(t, "unasked", b.server.unasked.sum(), 100)
		equal(t, "counts", len(log.times), 2)
	})
}

// TestMetricsDoNotWaitForACount, which takes long where there are many clients.
func TestMetricsDoNotWaitForACount(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := NewServer(Options{Metrics: registry})
	s.unasked.mu.Lock() // as a count does
	defer s.unasked.mu.Unlock()
	gathered := make(chan error, 1)
	go func() {
		_, err := registry.Gather()
		gathered <- err
	}()
	select {
	case err := <-gathered:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("they wait")
	}
}

// TestACountReadsTheNamesOfAStreamOnce, also for a node without an id.
func TestACountReadsTheNamesOfAStreamOnce(t *testing.T) {
	const count = 200
	allocated := func(id string) float64 {
		s := NewServer(Options{Identifier: "hdsd-test"})
		var u publish.Update
		names := manyNames(2 * count)
		for _, name := range names[:count] {
			u.Clusters = append(u.Clusters, clusters(name, "1")...)
		}
		u.Assignments = manyAssignments(names, 1)
		s.Update(u)
		st := &stream{server: s, permitted: access.AllClusters(), delta: true, wake: make(chan struct{}, 1), nodeID: id}
		for kind, table := range s.published.tables() {
			st.subs[kind] = newSubscription(st, table)
			if err := st.subs[kind].requests.process(&request{names: names[kind*count:][:count]}); err != nil {
				t.Fatal(err)
			}
		}
		now := time.Now()
		for _, w := range st.subs[0].interest.watches {
			f := w.current()
			w.sent = f.version
			w.take(f, now)
		}
		s.streams.add(st)
		return testing.AllocsPerRun(1, func() {
			unasked := 0
			for _, n := range s.unasked.count(now.Add(time.Hour)) {
				unasked += n
			}
			equal(t, "unasked", unasked, count)
		})
	}
	if without, with := allocated(""), allocated("dp-1"); without > 2*with {
		t.Errorf("a count of a node without an id takes %v allocations, and of one with an id %v", without, with)
	}
}
