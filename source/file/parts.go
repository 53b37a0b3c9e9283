package file

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"hdsd/internal/yamlpb"
)

// parts reads a DiscoveryResponse with separately parsable resources, on all processors. It
// returns false, and has read nothing, for any other text, or a text that is wrong as a whole.
func (c *contents) parts(file string, data []byte) bool {
	parts, ok := yamlpb.SplitAsEnvoy(file, "resources", data)
	if !ok || parts.Head.Has("static_resources") || len(parts.Head.Decode(&discoveryv3.DiscoveryResponse{}, "resources")) > 0 {
		return false
	}
	list := make([]contents, parts.Len())
	var failed atomic.Bool
	eachInParallel(len(list), func(i int) {
		if failed.Load() {
			return
		}
		if list[i].maxEndpoints = c.maxEndpoints; list[i].packedPart(parts, i) {
			return
		}
		node, err := parts.Parse(i)
		if err != nil {
			failed.Store(true)
			return
		}
		list[i] = contents{maxEndpoints: c.maxEndpoints}
		list[i].resource(node)
	})
	if failed.Load() {
		return false
	}
	c.listed = len(list)
	for i := range list {
		c.resources = append(c.resources, list[i].resources...)
		c.problems = append(c.problems, list[i].problems...)
		c.read += list[i].read
	}
	return true
}

// packedPart reads an element the quick way. If it returns false, the element may be wrong, or
// is not written in the usual way, and nothing read so far counts.
func (c *contents) packedPart(parts *yamlpb.Parts, i int) bool {
	node, ok := parts.ParsePacked(i)
	if !ok {
		return false
	}
	c.resource(node)
	// An EDS cluster keeps its listed endpoints, although they do not count.
	return len(c.problems) == 0 && !slices.ContainsFunc(c.resources, func(r resource) bool { return r.cluster.GetLoadAssignment() != nil })
}

// eachInParallel calls f with each index below n, on all processors, and waits.
func eachInParallel(n int, f func(i int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				f(i)
			}
		})
	}
	workers.Wait()
}
