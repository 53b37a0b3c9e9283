package store

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
)

// BenchmarkRoom is the processor time of the steps by which the room of transitions is given
// back: of those that are too old, with 10,000 events or without, and of those that are too
// many; and of 63,000 endpoints that are gone. The writer takes one step
// between two groups, so that a step is as long as a group waits for it, apart from the disk.
func BenchmarkRoom(b *testing.B) {
	for name, giveBack := range map[string]func(*Store, *wall){
		"age": func(s *Store, now *wall) { now.set(sec(1e6)); s.intake.askPrune() },
		"endpoints": func(s *Store, now *wall) {
			now.set(sec(1e6))
			prune(b, s)
			s.Forget(func(health.Hash) bool { return false })
		},
		"events": func(s *Store, now *wall) {
			for n := range maxEvents {
				s.AppendEvents([]Event{{Time: day.Add(time.Duration(n)), Kind: storev1.EventKind_CHECKER_LOST, Checker: "checker-1", Text: "disconnected; its seats are kept for the grace period"}})
				if n%1000 == 0 {
					flush(b, s)
				}
			}
			now.set(sec(1e6))
			s.intake.askPrune()
		},
		"size": func(s *Store, _ *wall) { s.SetMaxBytes(s.db.used.Load() / 4) },
	} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				var now wall
				now.set(day)
				s := open(b, b.TempDir(), func(o *Options) { now.keep(o); o.mapSize = 0 })
				random := rand.New(rand.NewPCG(1, 1))
				for n := range benchHistory {
					s.Append([]health.Transition{benchTransition(random, n)})
					if n%10_000 == 9999 {
						flush(b, s)
					}
				}
				giveBack(s, &now)
				for rest := false; !rest; {
					if err := s.writer.call(b.Context(), func() {
						took = append(took, processorTime(b, func() { s.writer.pruner.step(0) }))
						rest = s.intake.idle() && !s.writer.pruner.busy()
					}); err != nil {
						b.Fatal(err)
					}
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(len(took)), "steps")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-worst")
		})
	}
}

// processorTime returns what the thread of f used.
func processorTime(b *testing.B, f func()) time.Duration {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var all unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &all); err != nil {
			b.Fatal(err)
		}
		return time.Duration(all.Utime.Nano() + all.Stime.Nano())
	}
	began := used()
	f()
	return used() - began
}
