package scale

import (
	"os"
	"testing"
	"time"
)

// Size of the fleet.
const (
	clusters    = 1000
	endpoints   = 100_000
	checkers    = 200
	zones       = 4
	subscribers = 5
)

const mega = 1e6

// BenchmarkFleet has 200 checkers check 100,000 endpoints three times, with the
// default configuration: reports once a second, 3 s to settle, 5 s of grace.
func BenchmarkFleet(b *testing.B) {
	s := simulate(b, newWorld(clusters, endpoints/clusters), checkers, zones, time.Second, "")
	s.connect()
	b.Run("first-start", func(b *testing.B) { s.measureStart(b) })
	for range subscribers {
		subscribe(b, s.GRPC)
	}
	b.Run("steady", func(b *testing.B) {
		s.measureUse(b, 30*time.Second, func() { time.Sleep(30 * time.Second) })
	})
	b.Run("flipping", func(b *testing.B) {
		s.measureUse(b, time.Minute, func() { s.flipSome(endpoints/100, time.Minute) })
		for i := range s.world.failing {
			s.world.failing[i].Store(false)
		}
		s.until("every endpoint to be well again", s.allHealthy)
	})
	b.Run("checker-restarts", func(b *testing.B) {
		s.measureLoss(b, s.checkers[:1], func(k *checker) { k.stop(); k.start() }, checkers)
	})
	b.Run("checker-lost", func(b *testing.B) {
		s.measureLoss(b, s.checkers[:1], func(k *checker) { k.stop() }, checkers-1)
	})
	b.Run("checker-back", func(b *testing.B) {
		s.measureLoss(b, s.checkers[:1], func(k *checker) { k.start() }, checkers)
	})
	b.Run("zone-lost", func(b *testing.B) {
		s.measureLoss(b, s.inZone(3), func(k *checker) { k.stop() }, checkers-checkers/zones)
	})
	b.Run("zone-back", func(b *testing.B) {
		s.measureLoss(b, s.inZone(3), func(k *checker) { k.start() }, checkers)
	})
	b.Run("start-after-kill", func(b *testing.B) {
		s.Kill()
		s.measureStart(b)
	})
}

// measureStart starts the coordinator, for which all checkers wait.
func (s *simulation) measureStart(b *testing.B) {
	for b.Loop() {
		began := time.Now()
		s.Start()
		b.ReportMetric(time.Since(began).Seconds(), "s-to-ready")
		s.until("every checker to be told", slowly(func() bool { return s.covered(3) }))
		b.ReportMetric(time.Since(began).Seconds(), "s-to-told")
		s.until("every checker to follow", slowly(func() bool { return s.synced(len(s.checkers)) }))
		b.ReportMetric(time.Since(began).Seconds(), "s-to-synced")
		s.until("every endpoint to have its verdict", slowly(s.allHealthy))
		b.ReportMetric(time.Since(began).Seconds(), "s-to-verdicts")
		u := usageOf(b, s.PID())
		b.ReportMetric(u.processor.Seconds(), "cpu-s")
		b.ReportMetric(float64(u.resident)/mega, "RSS-MB")
		b.ReportMetric(float64(u.peak)/mega, "peak-RSS-MB")
		b.ReportMetric(load(b), "load")
	}
}

// measureUse measures what is used while something goes on for so long.
func (s *simulation) measureUse(b *testing.B, d time.Duration, during func()) {
	for b.Loop() {
		before, own := usageOf(b, s.PID()), usageOf(b, os.Getpid())
		during()
		after := usageOf(b, s.PID())
		b.ReportMetric(cores(before, after), "cores")
		b.ReportMetric(cores(own, usageOf(b, os.Getpid())), "simulation-cores")
		b.ReportMetric(float64(after.resident)/mega, "RSS-MB")
		b.ReportMetric(float64(after.peak)/mega, "peak-RSS-MB")
		b.ReportMetric(load(b), "load")
	}
}

// measureLoss measures until each endpoint is again given to three connected
// checkers, and what that took. With fewer checkers than there were it cannot
// be true before the grace period ends.
func (s *simulation) measureLoss(b *testing.B, of []*checker, happens func(*checker), left int) {
	for b.Loop() {
		bytes, specifiers := s.told()
		before := usageOf(b, s.PID())
		began := time.Now()
		for _, k := range of {
			happens(k)
		}
		s.until("every endpoint to have three checkers", func() bool { return s.covered(3) && s.synced(left) })
		b.ReportMetric(time.Since(began).Seconds(), "s-to-synced")
		b.ReportMetric((usageOf(b, s.PID()).processor - before.processor).Seconds(), "cpu-s")
		bytesAfter, specifiersAfter := s.told()
		b.ReportMetric(float64(bytesAfter-bytes)/mega, "sent-MB")
		b.ReportMetric(float64(specifiersAfter-specifiers), "specifiers")
		b.ReportMetric(load(b), "load")
	}
}
