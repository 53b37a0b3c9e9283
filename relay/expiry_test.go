package relay

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkExpiry: of nodes that each had a version of a cluster of their own, or one version of
// it in their own words, forgetting one costs the same however many there are.
func BenchmarkExpiry(b *testing.B) {
	for _, nodes := range []int{5_000, 80_000} {
		for name, version := range map[string]func(i int) string{
			"bodies": func(i int) string { return fmt.Sprint(i) },
			"nodes":  func(int) string { return "1" },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, nodes), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					p := newPast(b, false)
					for i := range nodes {
						binary.BigEndian.PutUint64(p.key.node[:], uint64(nodes-i))
						p.end("web", version(i), "web")
					}
					p.now = p.now.Add(time.Minute)
					b.StartTimer()
					p.m.expire(p.now)
					b.StopTimer()
					p.wantEmpty()
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(nodes), "ns/node")
			})
		}
	}
}

// TestARosterKeepsItsOrder, whichever of it are removed.
func TestARosterKeepsItsOrder(t *testing.T) {
	t.Parallel()
	r := &roster{}
	var want []*body
	for i := range 100 {
		x := &body{name: fmt.Sprint(i)}
		r.add(x)
		want = append(want, x)
	}
	for len(want) > 0 {
		index := len(want) * 7 % 11 % len(want)
		r.remove(want[index])
		want = slices.Delete(want, index, index+1)
		if len(want)%3 == 0 {
			added := &body{name: "added"}
			r.add(added)
			r.remove(added)
		}
		if r.size() != len(want) {
			t.Fatalf("it counts %d, want %d", r.size(), len(want))
		}
		if len(want)%5 == 0 && !slices.Equal(r.list(), want) {
			t.Fatalf("with %d left, it lists others", len(want))
		}
	}
	if empty := (*roster)(nil); empty.size() != 0 || empty.list() != nil {
		t.Error("no roster has something in it")
	}
}
