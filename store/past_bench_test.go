package store

import (
	"fmt"
	"testing"
	"time"

	"hdsd/health"
)

// BenchmarkPast asks about 1,000 endpoints in a history of 200,000 transitions
// of 10,000 endpoints.
func BenchmarkPast(b *testing.B) {
	s := open(b, b.TempDir())
	var endpoints []health.Endpoint
	for i := range 10_000 {
		endpoints = append(endpoints, endpoint(fmt.Sprintf("web-%02d", i%100), "a", fmt.Sprintf("10.0.%d.%d:80", i/256, i%256)))
	}
	for i := range 20 {
		var all []health.Transition
		for j := range endpoints {
			all = append(all, flip(endpoints[j], 10_000*i+j))
		}
		s.Append(all)
		flush(b, s)
	}
	end := day.Add(200_000 * time.Second)
	b.Run("Spent", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.TimeInStatus(endpoints[:1000], day, end); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("AsOf", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.AsOf(endpoints[:1000], day.Add(100_000*time.Second)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Endpoints", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Endpoints(nil, "", false, &endpoints[50], 1000); err != nil {
				b.Fatal(err)
			}
		}
	})
}
