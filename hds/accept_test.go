package hds_test

import (
	"fmt"
	"testing"
	"time"

	corev2 "github.com/envoyproxy/go-control-plane/envoy/api/v2/core"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv2 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v2"

	"hdsd/envoy/specifier"
	"hdsd/hds"
)

// accepting is a recorder that writes down accepted specifiers, too.
type accepting struct{ recorder }

func (l *accepting) Accepted(id string, s *specifier.Specifier) {
	l.add(fmt.Sprintf("accepted %s %d %v", id, s.Serial, s.Order))
}

func numbered(serial uint64, endpoints ...checked) *specifier.Specifier {
	s := assignment(endpoints...)
	s.Serial = serial
	return s
}

func TestAcceptanceIsToldOnceAndBeforeTheReport(t *testing.T) {
	l := &accepting{}
	bubbleWith(t, hds.Options{Interval: time.Second}, l, &l.recorder, func(f *fixture) {
		c := f.connect("a", "10.1.0.1", "z1")
		f.sink.take()
		sent := c.specifiers()
		f.server.Assign("a", numbered(1))
		sent()
		f.sink.take()
		c.send(report())
		same(t, "a heartbeat", f.sink.take(), "accepted a 1 []", "reported a")
		f.server.Assign("a", numbered(2, checked{1, web1}))
		sent()
		c.send(report())
		same(t, "a heartbeat of before", f.sink.take(), "reported a")
		c.send(report(said{web1, down, 0}))
		same(t, "the first report", f.sink.take(), "accepted a 2 [1]", "reported a 1=UNHEALTHY")
		c.send(report(said{web1, up, 0}))
		same(t, "the next", f.sink.take(), "reported a 1=HEALTHY")
		f.server.Assign("a", numbered(3, checked{1, web1}, checked{2, web2}))
		sent()
		c.send(report(said{web1, up, 0}))
		same(t, "one that does not follow yet", f.sink.take(), "reported a")
		f.server.Assign("a", numbered(4, checked{2, web2}))
		sent()
		c.send(report(said{web1, up, 0}, said{web2, up, 0}))
		same(t, "one that follows the one before", f.sink.take(), "accepted a 3 [1 2]", "reported a 2=HEALTHY")
	})
}

// TestRetelling: what is sent differs in nothing, but the votes count only now.
func TestRetelling(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := assigned(f, checked{1, web1})
		said := report(said{web1, up, 0})
		c.hears("first", said, "1=HEALTHY")
		f.server.Assign("a", assignment(checked{1, web1}))
		f.sink.take()
		c.hears("after the same again", said, "")
		again := assignment(checked{1, web1})
		again.Retell = true
		f.server.Assign("a", again)
		f.sink.take()
		c.hears("after one that has it told anew", said, "1=HEALTHY")
		c.hears("once more", said, "")
	})
}

func TestAcceptedV2SpecifierLacksWhatWasLeftOut(t *testing.T) {
	l := &accepting{}
	bubbleWith(t, hds.Options{Interval: time.Second}, l, &l.recorder, func(f *fixture) {
		stream, err := discoveryv2.NewHealthDiscoveryServiceClient(f.dial("10.1.0.1")).StreamHealthCheck(f.ctx)
		if err != nil {
			t.Fatal(err)
		}
		say := func(m *discoveryv2.HealthCheckRequestOrEndpointHealthResponse) {
			if err := stream.Send(m); err != nil {
				t.Fatal(err)
			}
		}
		say(helloV2(nodeV2("a")))
		f.sink.take()
		spec := numbered(7, checked{5, "secure/a/10.0.0.5:80"}, checked{1, web1})
		spec.Clusters[0].Head.TransportSocketMatches = []*clusterv3.Cluster_TransportSocketMatch{{Name: "tls"}}
		spec.Clusters[1].Head.HealthChecks = []*corev3.HealthCheck{httpCheck("/ok")}
		f.server.Assign("a", spec)
		f.sink.take()
		say(reportV2(saidV2{"10.0.0.1", corev2.HealthStatus_HEALTHY}))
		same(t, "calls", f.sink.take(), "accepted a 7 [1]", "reported a 1=HEALTHY")
	})
}
