package clusters

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"hdsd/catalog"
	"hdsd/source/sample"
)

// bulk returns clusters with ten endpoints each, for a replica.
func bulk(count, size int) *catalog.Delivery {
	d := &catalog.Delivery{Rules: ruleSet, Answered: map[string]bool{"local": true}, Complete: true}
	addresses := make([]string, size)
	for i := range count {
		for j := range addresses {
			n := i*size + j
			addresses[j] = fmt.Sprintf("10.%d.%d.%d:80", n>>16&255, n>>8&255, n&255)
		}
		d.Changed = append(d.Changed, catalog.Change{Cluster: catalog.Prepare(sample.WithPath(fmt.Sprintf("cluster-%06d", i), "/", addresses...), ruleSet)})
	}
	return d
}

// BenchmarkDeliver measures the core's time for the digests of 100,000 clusters, and for a reload that changes none of
// them.
func BenchmarkDeliver(b *testing.B) {
	d := bulk(100_000, 2)
	for _, again := range []bool{false, true} {
		b.Run(fmt.Sprint("again=", again), func(b *testing.B) {
			for b.Loop() {
				o := NewOwn()
				if o.Deliver(d); again {
					o.Deliver(d)
				}
			}
		})
	}
}

// BenchmarkChangeOfLeader measures what a new leader and one other replica do until the leader knows the 100,000 clusters
// of both, which are the same.
func BenchmarkChangeOfLeader(b *testing.B) {
	d := bulk(100_000, 2)
	leader, other := NewOwn(), NewOwn()
	leader.Deliver(d)
	other.Deliver(d)
	names := 0
	for b.Loop() {
		other.Restart()
		u := NewUnion("r1", leader)
		names = 0
		for m := other.Take(); m != nil; m = other.Take() {
			u.Apply(start, "r2", m)
			for i := range m.Changed {
				names += len(m.Changed[i].Name) + 8
			}
		}
		for u.Due() {
			u.Next(true)
		}
	}
	b.ReportMetric(float64(names), "bytes")
}

// BenchmarkLargeCluster measures the core's time for a cluster of 100,000 endpoints that another replica has alone, and
// for one that the leader has in another version.
func BenchmarkLargeCluster(b *testing.B) {
	for _, shared := range []bool{false, true} {
		b.Run(fmt.Sprint("shared=", shared), func(b *testing.B) {
			leader, other := NewOwn(), NewOwn()
			d := bulk(1, 100_000)
			if other.Deliver(d); shared {
				leader.Deliver(bulk(1, 99_999))
			} else {
				leader.Deliver(bulk(0, 0))
			}
			k := d.Changed[0].Cluster.Source
			for b.Loop() {
				u := NewUnion("r1", leader)
				u.Next(true)
				u.Apply(start, "r2", &Update{Begin: true, Changed: []Listing{{k.Name, DigestOf(k), k}}, End: true})
				u.Next(true)
			}
			b.ReportMetric(float64(len(k.Assignment.Wire())+proto.Size(k.Config)), "bytes")
		})
	}
}

// BenchmarkDifferences measures the core's time for what a tick tells of 100,000 clusters of the relay, which differ by
// nature, while another one comes.
func BenchmarkDifferences(b *testing.B) {
	leader, other := NewOwn(), NewOwn()
	leader.Deliver(bulk(0, 0))
	other.Deliver(bulk(100_000, 1))
	u := NewUnion("r1", leader)
	for m := other.Take(); m != nil; m = other.Take() {
		u.Apply(start, "r2", m)
	}
	for b.Loop() {
		u.moved = true
		u.Differences("relay")
	}
}
