package catalog_test

import (
	"fmt"
	"runtime"
	"testing"

	"hdsd/catalog"
	"hdsd/source/sample"
)

// TestPreparedClustersAreSmall bounds what is kept of each endpoint, beside what its source
// keeps.
func TestPreparedClustersAreSmall(t *testing.T) {
	const endpoints, most = 20_000, 135 // bytes
	addresses := make([]string, endpoints)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("10.0.%d.%d:8080", i>>8, i&255)
	}
	from := sample.Web("web", addresses...)
	before := inUse()
	k := catalog.Prepare(from, noRules())
	each := (inUse() - before) / endpoints
	runtime.KeepAlive(from)
	if len(k.Endpoints) != endpoints || !k.IsChecked() {
		t.Fatalf("%d endpoints", len(k.Endpoints))
	}
	if each > most {
		t.Errorf("%d bytes for each endpoint, want %d at most", each, most)
	}
}

// inUse is how many bytes of the heap are not garbage.
func inUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
