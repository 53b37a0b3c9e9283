package xds

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/envoy/rules"
)

// TestNACKLoop has a server answer each NACK at once with the same mistake, for a minute.
// The first NACKs go out at once. What is right is ACKed at once all the while.
func TestNACKLoop(t *testing.T) {
	const most = mostNacks + 60*nacksPerSecond + 1
	t.Run("state of the world", func(t *testing.T) {
		scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(t *testing.T, s *script, _ *running) {
			p := next(t, s.state)
			p.next()
			p.send(state(rules.Cluster, "0", "0", eds("web", "")))
			p.next()
			p.next()
			nacks, version := 0, 0
			p.send(state(rules.Cluster, "bad", "bad", inline("")))
			for range 600 {
				synctest.Wait()
				for len(p.requests) > 0 {
					if p.next().GetErrorDetail() != nil {
						nacks++
						p.send(state(rules.Cluster, "bad", fmt.Sprint("bad", nacks), inline("")))
						synctest.Wait()
					}
				}
				version++
				p.send(state(rules.Assignment, fmt.Sprint(version), "good", endpoints("web", "10.0.0.1")))
				equal(t, "ACK", p.next().GetVersionInfo(), fmt.Sprint(version))
				time.Sleep(100 * time.Millisecond) // of the bubble
			}
			if nacks < mostNacks || nacks > most {
				t.Errorf("%d NACKs in a minute, want at most %d", nacks, most)
			}
		})
	})
	t.Run("delta", func(t *testing.T) {
		scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC, "one"), func(t *testing.T, s *script, _ *running) {
			p := next(t, s.delta)
			p.next()
			nacks := 0
			p.send(change(rules.Cluster, "bad", wrap("web", "1", inline("other"))))
			for range 600 {
				synctest.Wait()
				for len(p.requests) > 0 {
					if p.next().GetErrorDetail() != nil {
						nacks++
						p.send(change(rules.Cluster, fmt.Sprint("bad", nacks), wrap("web", "1", inline("other"))))
						synctest.Wait()
					}
				}
				time.Sleep(100 * time.Millisecond) // of the bubble
			}
			if nacks < mostNacks || nacks > most {
				t.Errorf("%d NACKs in a minute, want at most %d", nacks, most)
			}
		})
	})
}

// TestARareMistakeWaitsForNothing: one NACK a second goes out at once, however long.
func TestARareMistakeWaitsForNothing(t *testing.T) {
	scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC, "one"), func(t *testing.T, s *script, _ *running) {
		p := next(t, s.delta)
		p.next()
		for i := range 100 {
			p.send(change(rules.Cluster, fmt.Sprint(i), wrap("web", "1", inline("other"))))
			equal(t, "NACK", p.next().GetResponseNonce(), fmt.Sprint(i))
			time.Sleep(time.Second) // of the bubble
		}
	})
}

// TestMistakesThatWaitForNoNACK are read no faster than NACKs go out, a few at a time.
func TestMistakesThatWaitForNoNACK(t *testing.T) {
	scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(t *testing.T, s *script, r *running) {
		p := next(t, s.state)
		p.next()
		for i := range 1000 {
			p.send(state(rules.Cluster, fmt.Sprint(i), fmt.Sprint(i), inline("")))
		}
		synctest.Wait()
		if got := r.Status().Types[0].RejectedVersion; got == "999" {
			t.Error("all of them were read at once")
		}
	})
}
