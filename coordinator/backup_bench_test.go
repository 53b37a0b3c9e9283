package coordinator

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hdsd/store"
)

// BenchmarkBackup copies a million transitions while hdsd records 1,000 a second, checks the copies and
// restores them. It also measures the delay of the writer meanwhile.
func BenchmarkBackup(b *testing.B) {
	a, path := newArchive(b, askedClusters, askedPeriod, (*archive).transition), filepath.Join(b.TempDir(), "copy.db")
	defer a.write()()
	b.Run("rest", func(b *testing.B) { a.flushes(b, func() { time.Sleep(time.Second) }) })
	b.Run("copy", func(b *testing.B) {
		a.flushes(b, func() {
			if err := a.copyTo(b, path); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("examine", func(b *testing.B) {
		for b.Loop() {
			if about, err := store.Examine(b.Context(), path); err != nil || about.Transitions < askedTransitions {
				b.Fatal(about, err)
			}
		}
	})
	b.Run("restore", func(b *testing.B) {
		for b.Loop() {
			if _, err := store.Restore(b.Context(), b.TempDir(), path, store.RestoreOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func (a *archive) copyTo(b *testing.B, path string) error {
	from, err := a.history.Copy(b.Context())
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	size, err := io.Copy(to, from)
	b.ReportMetric(float64(size)/(1<<20), "MiB")
	return errors.Join(err, to.Close())
}

// flushes measures what a flush takes while something is done.
func (a *archive) flushes(b *testing.B, do func()) {
	stop, done := make(chan struct{}), make(chan []time.Duration)
	go func() {
		var took []time.Duration
		defer func() { done <- took }()
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		for {
			select {
			case <-stop:
				return
			case <-pace.C:
			}
			began := time.Now()
			if err := a.history.Flush(b.Context()); err != nil {
				b.Error(err)
				return
			}
			took = append(took, time.Since(began))
		}
	}()
	for b.Loop() {
		do()
	}
	close(stop)
	took := <-done
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "flush-median-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "flush-p99-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "flush-longest-ms")
}
