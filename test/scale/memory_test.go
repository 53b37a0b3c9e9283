package scale

import (
	"testing"
	"time"
)

// atRest is how long hdsd runs before its memory is measured: longer than the two minutes
// after which Go collects garbage in any case.
const atRest = 150 * time.Second

// BenchmarkMemory tells how much memory each endpoint of a large fleet takes, once all
// have their verdict and reports have come for a while, and how busy hdsd is meanwhile.
// HDSD_BINARY is the path of another hdsd, so that two can be compared. With HDSD_SCALE=full
// it is a million endpoints, 10,000 clusters and 1,000 checkers.
func BenchmarkMemory(b *testing.B) {
	s := simulateStart(b)
	s.connect()
	b.Run("first-start", func(b *testing.B) { s.measureStart(b) })
	b.Run("steady", func(b *testing.B) { s.measureMemory(b, atRest) })
	b.Run("start-after-kill", func(b *testing.B) {
		s.Kill()
		s.measureStart(b)
	})
	b.Run("steady-after-kill", func(b *testing.B) { s.measureMemory(b, atRest) })
}

// measureMemory measures what is resident after so long: the process's own memory, and the
// pages of files, which the kernel takes back when it needs them.
func (s *simulation) measureMemory(b *testing.B, after time.Duration) {
	for b.Loop() {
		before := usageOf(b, s.PID())
		time.Sleep(after)
		u := usageOf(b, s.PID())
		each := float64(len(s.world.addresses))
		b.ReportMetric(float64(u.resident)/each, "B-resident/endpoint")
		b.ReportMetric(float64(u.anonymous)/each, "B-own/endpoint")
		b.ReportMetric(float64(u.resident-u.anonymous)/each, "B-of-files/endpoint")
		b.ReportMetric(float64(u.peak)/each, "B-peak/endpoint")
		b.ReportMetric(cores(before, u), "cores")
		b.ReportMetric(load(b), "load")
	}
}
