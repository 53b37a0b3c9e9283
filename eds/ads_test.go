package eds

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/health"
	"hdsd/publish"
)

// end returns how the stream ended.
func (p *xdsPeer[Req, Res]) end() *status.Status {
	p.b.t.Helper()
	synctest.Wait()
	select {
	case err := <-p.ended:
		return status.Convert(err)
	default:
		p.b.t.Fatal("the stream goes on")
		return nil
	}
}

func TestAggregatedParksUnknownTypes(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	inOneBubble(t, Options{Metrics: registry}, func(t *testing.T, b *bench) {
		b.publish("a")
		d, s := b.delta(), b.state()
		for _, typeURL := range []string{
			resourcev3.ListenerType,
			"type.googleapis.com/envoy.api.v2.ClusterLoadAssignment", "nonsense",
		} {
			d.send(subscribe(typeURL, "a"))
			s.send(want(typeURL, "a"))
		}
		d.nothing()
		s.nothing()
		d.send(subscribe(resourcev3.EndpointType, "a"))
		equal(t, "delta goes on", describe(d.next()), "[a=HE]")
		s.send(want(resourcev3.EndpointType, "a"))
		equal(t, "state goes on", describeState(s.next()), "[a=HE]")
		parked := b.server.recorder.metrics.parked
		equal(t, "parked listeners", testutil.ToFloat64(parked.WithLabelValues(resourcev3.ListenerType)), 2.0)
		equal(t, "parked others", testutil.ToFloat64(parked.WithLabelValues(otherType)), 4.0)
		n, err := testutil.GatherAndCount(registry, "hdsd_xds_streams", "hdsd_xds_resources", "hdsd_xds_responses_total")
		if err != nil || n != 5 {
			t.Errorf("%d metrics, %v", n, err)
		}
		d.cancel()
		s.cancel()
	})
}

func TestTypeURLIsNeededOnlyOnAggregatedStreams(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a")
		b.server.Update(publish.Update{Clusters: clusters("a", "1")})
		d := b.delta()
		d.send(subscribe("", "a"))
		equal(t, "aggregated", d.end().Code(), codes.InvalidArgument)

		endpoints := endpointservice.NewEndpointDiscoveryServiceClient(b.conn)
		d = newPeer(b, endpoints.DeltaEndpoints)
		d.send(subscribe("", "a"))
		equal(t, "delta endpoints", describe(d.next()), "[a=HE]")
		d.send(subscribe(resourcev3.ClusterType, "a"))
		equal(t, "of another type", d.end().Code(), codes.InvalidArgument)
		s := newPeer(b, endpoints.StreamEndpoints)
		s.send(want("", "a"))
		equal(t, "endpoints", describeState(s.next()), "[a=HE]")
		s.cancel()

		clusters := clusterservice.NewClusterDiscoveryServiceClient(b.conn)
		d = newPeer(b, clusters.DeltaClusters)
		d.send(subscribe("", "a"))
		equal(t, "delta clusters", describe(d.next()), "[a=1]")
		d.cancel()
		s = newPeer(b, clusters.StreamClusters)
		s.send(want(resourcev3.ClusterType))
		equal(t, "clusters", describeState(s.next()), "[a=1]")
		s.cancel()
	})
}

func TestAggregatedSendsClustersBeforeAssignments(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a")
		b.server.Update(publish.Update{Clusters: clusters("a", "1")})
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "a"))
		p.send(ack(p.next()))
		p.send(subscribe(resourcev3.ClusterType))
		p.send(ack(p.next()))
		p.send(ack(p.next()))
		p.nothing()
		b.together(func() { // the assignment first
			b.server.setHealth(0, health.Unhealthy)
			b.server.Update(publish.Update{Clusters: clusters("a", "2")})
		})
		equal(t, "first", describe(p.next()), "[a=2]")
		equal(t, "second", describe(p.next()), "[a=UN]")
		p.cancel()
	})
}

func TestAggregatedWarmsAChangedCluster(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		b.server.Update(publish.Update{Clusters: clusters("a", "1", "b", "1")})
		d, s := b.delta(), b.state()
		d.send(subscribe(resourcev3.ClusterType))
		d.send(ack(d.next()))
		d.send(subscribe(resourcev3.EndpointType, "a", "b"))
		d.send(ack(d.next()))
		d.nothing()
		s.send(want(resourcev3.ClusterType))
		s.send(ackState(s.next()))
		s.send(want(resourcev3.EndpointType, "a", "b"))
		s.send(ackState(s.next(), "a", "b"))
		s.nothing()

		b.server.Update(publish.Update{Clusters: clusters("b", "2")})
		equal(t, "delta cluster", describe(d.next()), "[b=2]")
		equal(t, "delta assignment that its ACK waits for", describe(d.next()), "[b=HE]")
		equal(t, "clusters", describeState(s.next()), "[a=1 b=2]")
		equal(t, "assignment that their ACK waits for", describeState(s.next()), "[b=HE]")
		d.cancel()
		s.cancel()
	})
}

func TestAggregatedWarmsAChangedClusterWithoutAssignment(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.server.Update(publish.Update{Clusters: clusters("ghost", "1")})
		d, s := b.delta(), b.state()
		d.send(subscribe(resourcev3.ClusterType))
		d.send(ack(d.next()))
		d.send(subscribe(resourcev3.EndpointType, "ghost"))
		d.send(ack(d.next()))
		s.send(want(resourcev3.ClusterType))
		s.send(ackState(s.next()))
		s.send(want(resourcev3.EndpointType, "ghost"))
		s.send(ackState(s.next(), "ghost"))
		d.nothing()
		s.nothing()

		b.server.Update(publish.Update{Clusters: clusters("ghost", "2")})
		equal(t, "delta cluster", describe(d.next()), "[ghost=2]")
		equal(t, "delta: that it has no assignment", describe(d.next()), "[-ghost]")
		equal(t, "clusters", describeState(s.next()), "[ghost=2]")
		equal(t, "that it has no assignment", describeState(s.next()), "[ghost=]")
		d.cancel()
		s.cancel()
	})
}

// While the publication is incomplete, assignments go out before clusters.
func TestAggregatedWarmsAClusterThatComesAfterItsAssignment(t *testing.T) {
	inBubble(t, Options{Incomplete: true}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		b.server.Update(publish.Update{Clusters: clusters("a", "1", "b", "1")})
		s := b.state()
		s.send(want(resourcev3.ClusterType))
		s.send(want(resourcev3.EndpointType, "a"))
		r := s.next()
		equal(t, "known", describeState(r), "[a=HE]")
		s.send(ackState(r, "a"))
		s.nothing()
		b.server.Complete()
		equal(t, "clusters", describeState(s.next()), "[a=1 b=1]")
		r = s.next()
		equal(t, "assignment that their ACK waits for", describeState(r), "[a=HE]")
		s.send(ackState(r, "a", "b"))
		equal(t, "the other", describeState(s.next()), "[b=HE]")
		s.nothing()
		s.cancel()
	})
}

// A client that reconnects asks for both at once: the cluster may go out before the
// server has read which assignments the client has.
func TestAggregatedWarmsAClusterThatChangedWhileTheClientWasAway(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		b.server.Update(publish.Update{Clusters: clusters("a", "1", "b", "1")})
		d := b.delta()
		had := func(r *discoveryv3.DeltaDiscoveryResponse) map[string]string {
			versions := map[string]string{}
			for _, one := range r.GetResources() {
				versions[one.GetName()] = one.GetVersion()
			}
			d.send(ack(r))
			return versions
		}
		d.send(subscribe(resourcev3.ClusterType))
		clustersHad := had(d.next())
		d.send(subscribe(resourcev3.EndpointType, "a", "b"))
		assignmentsHad := had(d.next())
		d.cancel()

		b.server.Update(publish.Update{Clusters: clusters("b", "2")})
		d = b.delta()
		again := subscribe(resourcev3.ClusterType)
		again.InitialResourceVersions = clustersHad
		d.send(again)
		equal(t, "cluster", describe(d.next()), "[b=2]")
		again = subscribe(resourcev3.EndpointType, "a", "b")
		again.InitialResourceVersions = assignmentsHad
		d.send(again)
		equal(t, "assignment that its ACK waits for", describe(d.next()), "[b=HE]")
		d.nothing()
		d.cancel()
	})
}

func TestTooManyNamesEndTheStreamWithTheCap(t *testing.T) {
	inBubble(t, Options{MaxNames: 3}, func(t *testing.T, b *bench) {
		names := []string{"a", "b", "c", "d"}
		d, s := b.delta(), b.state()
		d.send(subscribe(resourcev3.EndpointType, names[:2]...))
		d.send(ack(d.next()))
		d.send(subscribe(resourcev3.EndpointType, names[2:]...))
		s.send(want(resourcev3.EndpointType, names...))
		long := b.delta()
		long.send(subscribe(resourcev3.EndpointType, strings.Repeat("x", 1000)))
		reconnecting := b.delta()
		m := subscribe(resourcev3.EndpointType)
		m.InitialResourceVersions = map[string]string{"1": "", "2": "", "3": "", "4": ""}
		reconnecting.send(m)
		for _, got := range []*status.Status{d.end(), s.end(), long.end(), reconnecting.end()} {
			equal(t, "code", got.Code(), codes.ResourceExhausted)
			if !strings.Contains(got.Message(), "limits.max_source_clusters") || !strings.Contains(got.Message(), "up to") {
				t.Errorf("message %q", got.Message())
			}
		}
		synctest.Wait()
		equal(t, "slots left behind", len(b.server.published.assignments.slots), 0)
		equal(t, "clients", len(b.server.Clients(nil)), 0)
	})
}

func TestResubscribingWithoutAnAckStaysBounded(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a")
		for _, first := range [][]string{{"a"}, {"*"}} {
			p := b.delta()
			p.send(subscribe(resourcev3.EndpointType, first...))
			p.next()
			for range 2000 {
				m := subscribe(resourcev3.EndpointType, "x", "y")
				m.ResourceNamesUnsubscribe = []string{"x", "y"}
				p.send(m)
			}
			p.nothing()
			for st := range b.server.streams.open {
				u := st.subs[1]
				u.mu.Lock()
				if len(u.queue.watches) > 200 || len(u.interest.watches) > 1 {
					t.Errorf("%v: %d in the queue, %d watched", first, len(u.queue.watches), len(u.interest.watches))
				}
				u.mu.Unlock()
			}
			equal(t, "slots", len(b.server.published.assignments.slots), 1)
			p.cancel()
			synctest.Wait()
		}
	})
}

func TestStreamWithoutARequestEnds(t *testing.T) {
	inBubble(t, Options{FirstRequestTimeout: 5 * time.Second}, func(t *testing.T, b *bench) {
		good := b.delta()
		good.send(subscribe(resourcev3.ClusterType))
		good.next()
		mute, err := discoveryv3.NewAggregatedDiscoveryServiceClient(b.conn).StreamAggregatedResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		open := func() int {
			synctest.Wait()
			b.server.streams.mu.Lock()
			defer b.server.streams.mu.Unlock()
			return len(b.server.streams.open)
		}
		time.Sleep(5*time.Second - 1)
		equal(t, "open streams", open(), 2)
		if _, err := mute.Recv(); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("it ends with %v", err)
		}
		time.Sleep(time.Minute)
		equal(t, "open streams", open(), 1)
	})
}

func TestStuckReaderEndsAndHarmsNobody(t *testing.T) {
	inBubble(t, Options{WriteTimeout: 5 * time.Second}, func(t *testing.T, b *bench) {
		b.server.Update(publish.Update{Assignments: []publish.Assignment{assignment("large", 0, 20_000)}, Clusters: clusters("c", "1")})
		good := b.delta()
		good.send(subscribe(resourcev3.EndpointType, "large"))
		good.send(ack(good.next()))

		// It does not read, and its first response takes more than the window and the server's quota for writing.
		stuck, err := discoveryv3.NewAggregatedDiscoveryServiceClient(b.conn).DeltaAggregatedResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []*discoveryv3.DeltaDiscoveryRequest{subscribe(resourcev3.EndpointType, "large"), subscribe(resourcev3.ClusterType)} {
			if err := stuck.Send(m); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		equal(t, "clients", len(b.server.Clients(nil)), 3)
		b.server.setHealth(7, health.Unhealthy)
		r := good.next()
		equal(t, "the other goes on", len(r.GetResources()), 1)
		good.send(ack(r))

		time.Sleep(6 * time.Second)
		synctest.Wait()
		equal(t, "hdsd_xds_stuck_streams_total", testutil.ToFloat64(b.server.recorder.metrics.stuck), 1.0)
		equal(t, "clients", len(b.server.Clients(nil)), 1)
		b.server.setHealth(7, health.Healthy)
		equal(t, "the other still goes on", len(good.next().GetResources()), 1)
		for {
			if _, err = stuck.Recv(); err != nil {
				break
			}
		}
		equal(t, "how it ended", status.Code(err), codes.DeadlineExceeded)
		good.cancel()
	})
}

func TestCloseEndsStreamsAndRefusesNewOnes(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "a"))
		p.next()
		b.server.Close()
		equal(t, "open stream", p.end().Code(), codes.Unavailable)
		equal(t, "late stream", b.state().end().Code(), codes.Unavailable)
	})
}

func TestClientsHaveTheNodeOfTheFirstMessage(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a")
		p := b.state()
		p.send(want(resourcev3.EndpointType, "a"))
		r := p.next()
		m := ackState(r, "a")
		m.Node = node("someone else")
		time.Sleep(time.Minute)
		p.send(m)
		p.send(&discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.ClusterType})
		p.next()
		all := b.server.Clients(nil)
		equal(t, "clients", len(all), 2)
		equal(t, "id", all[1].ID, "dp-1")
		equal(t, "type", all[1].TypeURL, resourcev3.EndpointType)
		equal(t, "ack", all[1].LastAck.Sub(all[1].Connected), time.Minute)
		equal(t, "cluster stream's id", all[0].ID, "dp-1")
		p.cancel()
	})
}
