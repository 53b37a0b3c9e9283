package file

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"hdsd/internal/yamlpb"
)

// parts reads a DiscoveryResponse of which each resource can be parsed alone, on all
// processors. It returns false, and has read nothing, if the text is not such a one, or
// something is wrong with it as a whole.
func (c *contents) parts(file string, data []byte) bool {
	parts, ok := yamlpb.SplitAsEnvoy(file, "resources", data)
	if !ok || parts.Head.Has("static_resources") || len(parts.Head.Decode(&discoveryv3.DiscoveryResponse{}, "resources")) > 0 {
		return false
	}
	each := make([]contents, parts.Len())
	var failed atomic.Bool
	eachInParallel(len(each), func(i int) {
		if failed.Load() {
			return
		}
		if each[i].most = c.most; each[i].packedPart(parts, i) {
			return
		}
		node, err := parts.Parse(i)
		if err != nil {
			failed.Store(true)
			return
		}
		each[i] = contents{most: c.most}
		each[i].resource(node)
	})
	if failed.Load() {
		return false
	}
	c.listed = len(each)
	for i := range each {
		c.resources = append(c.resources, each[i].resources...)
		c.problems = append(c.problems, each[i].problems...)
		c.read += each[i].read
	}
	return true
}

// packedPart reads an element the quick way. If it returns false, something may be wrong with it,
// or it is not written in the usual way, and all that was read does not count.
func (c *contents) packedPart(parts *yamlpb.Parts, i int) bool {
	node, ok := parts.ParsePacked(i)
	if !ok {
		return false
	}
	c.resource(node)
	// An EDS cluster keeps what it lists, although that does not count.
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
