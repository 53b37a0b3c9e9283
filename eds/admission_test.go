package eds

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hdsd/health"
)

func TestFirstSyncsAreAdmittedInOrder(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	inOneBubble(t, Options{FirstSyncs: 2, MaxResponseBytes: 100, Metrics: registry}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		join := func() *deltaPeer {
			p := b.delta()
			p.send(subscribe(resourcev3.EndpointType, "a", "b"))
			synctest.Wait()
			return p
		}
		first, second, third, fourth, fifth := join(), join(), join(), join(), join()
		r := first.next()
		second.next()
		third.nothing()
		fourth.nothing()
		first.send(ack(r))
		r = first.next() // the rest of what it is to be sent first
		third.nothing()
		first.send(ack(r))
		third.next()
		fourth.nothing()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP hdsd_xds_first_syncs_waiting Subscriptions that wait to be sent their first resources.
# TYPE hdsd_xds_first_syncs_waiting gauge
hdsd_xds_first_syncs_waiting 2
`), "hdsd_xds_first_syncs_waiting"); err != nil {
			t.Error(err)
		}

		b.server.setHealth(0, health.Unhealthy)
		r = first.next()
		equal(t, "who is synced does not wait", describe(r), "[a=UN]")
		first.send(ack(r))
		fourth.cancel() // in line
		third.cancel()  // at its turn
		fifth.next()
		sixth := join()
		sixth.nothing()
		time.Sleep(maxFirstSync) // of the second and the fifth, which do not answer
		sixth.next()
		for _, p := range []*deltaPeer{first, second, fifth, sixth} {
			p.cancel()
		}
		synctest.Wait()
		equal(t, "places", b.server.admission.free, 2)
		equal(t, "in line", len(b.server.admission.waiting), 0)
	})
}

func TestASyncWithNothingToSendFreesItsPlace(t *testing.T) {
	inBubble(t, Options{FirstSyncs: 1}, func(t *testing.T, b *bench) {
		b.publish("a")
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "a"))
		r := p.next()
		had := versions(r)
		p.send(ack(r))
		again := b.delta()
		m := subscribe(resourcev3.EndpointType, "a")
		m.InitialResourceVersions = had
		again.send(m)
		again.nothing()
		other := b.delta()
		other.send(subscribe(resourcev3.EndpointType, "a"))
		other.next()
		p.cancel()
		again.cancel()
		other.cancel()
	})
}

func TestIncompleteSubscriptionsTakeNoPlace(t *testing.T) {
	inBubble(t, Options{FirstSyncs: 1, Incomplete: true}, func(t *testing.T, b *bench) {
		b.publish("a")
		waiting := b.state()
		waiting.send(want(resourcev3.ClusterType))
		waiting.nothing()
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "a"))
		equal(t, "known", describe(p.next()), "[a=HE]")
		waiting.cancel()
		p.cancel()
	})
}
