package inflight

import "testing"

// BenchmarkLongQueue is what a message costs of a stream of which so many wait, all along. It
// must not depend on how many there are.
func BenchmarkLongQueue(b *testing.B) {
	for _, n := range []struct {
		name  string
		count int
	}{{"few", 16}, {"many", 100_000}} {
		b.Run(n.name, func(b *testing.B) {
			var q sizes
			for range n.count {
				q.push(5)
			}
			for len(q.values) < cap(q.values) {
				q.push(5)
			}
			b.ResetTimer()
			for b.Loop() {
				q.pop()
				q.push(5)
			}
		})
	}
}
