package recording

import (
	"fmt"
	"testing"
	"time"

	"hdsd/catalog"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/source/sample"
)

// BenchmarkClusters measures the Writer in a first start with 100,000 endpoints in 1,000 clusters.
func BenchmarkClusters(b *testing.B) {
	rules := catalog.NewRules(config())
	d := catalog.Delivery{Rules: rules, Complete: true}
	for i := range 1000 {
		addresses := make([]string, 100)
		for j := range addresses {
			addresses[j] = fmt.Sprintf("10.%d.%d.%d:8080", i/250, i%250, j+1)
		}
		d.Changed = append(d.Changed, catalog.Change{Cluster: catalog.Prepare(sample.Web(fmt.Sprintf("service-%d", i), addresses...), rules)})
	}
	var size byteCounter
	b.ReportAllocs()
	for b.Loop() {
		size = 0
		var w *Writer
		e, w, err := New(&size, &Header{Start: time.Now()}, &log.State{}, func(p Piece) bool {
			_, err := w.Write(p)
			return err == nil
		})
		if err != nil {
			b.Fatal(err)
		}
		e.Begin(time.Now(), machine.Delivered{Delivery: d})
		e.Flush()
	}
	b.ReportMetric(float64(size)/100_000, "B/endpoint")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/endpoint")
}

// byteCounter counts bytes.
type byteCounter int

// Write implements io.Writer.
func (c *byteCounter) Write(p []byte) (int, error) {
	*c += byteCounter(len(p))
	return len(p), nil
}
