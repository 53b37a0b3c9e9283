package eds

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/rs/zerolog"

	"hdsd/health"
)

// TestRefusingEverythingCostsOneResponseAChange also where there are heartbeats.
func TestRefusingEverythingCostsOneResponseAChange(t *testing.T) {
	for name, o := range map[string]Options{"plain": {}, "with ttl": kept} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, o, func(t *testing.T, b *bench) {
				b.publish("a", "b", "c")
				d, s := b.delta(), b.state()
				d.send(subscribeWithTTL(resourcev3.EndpointType, "a", "b", "c"))
				m := want(resourcev3.EndpointType, "a", "b", "c")
				m.Node.ClientFeatures = []string{"xds.config.supports-resource-ttl", "xds.config.resource-in-sotw"}
				s.send(m)
				const changes = 20
				for i := range changes {
					d.send(nack(d.next(), "no"))
					s.send(nackState(s.next(), "no", "a", "b", "c"))
					time.Sleep(time.Minute)
					d.nothing()
					s.nothing()
					b.together(func() {
						b.server.setHealth(health.EndpointID(i%3), health.Status(1+i%2))
						b.server.setHealth(health.EndpointID(i%3), health.Status(2+i%2))
					})
					synctest.Wait()
				}
				d.cancel()
				s.cancel()
			})
		})
	}
}

// TestRefusingUntilReplaced: a client refuses something until it takes what replaces all that it
// refused, gives it up, or is gone.
func TestRefusingUntilReplaced(t *testing.T) {
	inOneBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a", "b")
		refusing := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			var all []string
			for _, r := range b.server.Refusing() {
				all = append(all, fmt.Sprintf("%s %s %s", r.ID, r.Text, time.Since(r.Since)))
			}
			equal(t, when, strings.Join(all, ", "), strings.Join(want, ", "))
		}
		d := b.delta()
		d.send(subscribe(resourcev3.EndpointType, "a", "b"))
		first := d.next()
		refusing("before it answers")
		d.send(nack(first, "no"))
		refusing("it refuses two", "dp-1 no 0s")
		time.Sleep(time.Second)
		b.server.setHealth(0, health.Unhealthy)
		next := d.next()
		refusing("something else comes", "dp-1 no 1s")
		d.send(ack(next))
		refusing("it takes one of the two", "dp-1 no 1s")
		d.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNamesUnsubscribe: []string{"b"}})
		refusing("it gives up the other")
		b.server.setHealth(0, health.Healthy)
		d.send(nack(d.next(), "too large"))
		refusing("it refuses another", "dp-1 too large 0s")
		d.cancel()
		refusing("it is gone")

		s := b.state()
		s.send(want(resourcev3.EndpointType, "a"))
		s.send(nackState(s.next(), "no", "a"))
		refusing("by state of the world", "dp-1 no 0s")
		b.server.setHealth(0, health.Unhealthy)
		s.send(ackState(s.next(), "a"))
		refusing("it takes what replaces it")
		s.cancel()

		m := want("", "a")
		fetch := func(when string, want ...string) {
			t.Helper()
			got, err := b.fetchEndpoints(m)
			if err != nil {
				t.Fatal(err)
			}
			refusing(when, want...)
			m.VersionInfo = got.GetVersionInfo()
		}
		fetch("a poll")
		m.ErrorDetail = nackState(new(discoveryv3.DiscoveryResponse), "too heavy").GetErrorDetail()
		fetch("a poll refuses it", "dp-1 too heavy 0s")
		m.ErrorDetail = nil
		fetch("a poll takes it")
	})
}

func TestARefusalIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	inOneBubble(t, Options{Log: zerolog.New(&log)}, func(t *testing.T, b *bench) {
		b.publish("a")
		p := b.delta()
		p.send(subscribe(resourcev3.EndpointType, "a"))
		says := func(text string, lines int) {
			t.Helper()
			p.send(nack(p.next(), text))
			p.nothing()
			equal(t, "lines after "+text, strings.Count(log.String(), `{"level":"warn","event":"xds_refused","node":"dp-1"`), lines)
			equal(t, "with the text", strings.Contains(log.String(), text), true)
		}
		says("no such zone", 1)
		b.server.setHealth(0, health.Unhealthy)
		says("no such zone", 1)
		b.server.setHealth(0, health.Healthy)
		says("too heavy", 2)
		m := want("", "a")
		m.ErrorDetail = nackState(new(discoveryv3.DiscoveryResponse), "too heavy").GetErrorDetail()
		for range 3 {
			if _, err := b.fetchEndpoints(m); err != nil {
				t.Fatal(err)
			}
		}
		equal(t, "lines after polls", strings.Count(log.String(), "xds_refused"), 2)
		for i := range maxLatest + 10 {
			b.server.recorder.refused(b.server.published.clusters, fmt.Sprint(i), "no")
		}
		equal(t, "remembered", len(b.server.recorder.nacks.texts) <= maxLatest, true)
		p.cancel()
	})
}
