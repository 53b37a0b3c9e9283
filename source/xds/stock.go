package xds

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"hdsd/internal/envoyrules"
)

// Bounds that the configuration does not change.
const (
	maxStockBytes = maxSnapshotBytes // of all resources, so that the snapshot is readable
	maxShownBytes = 64 << 20         // of the refused resources that Status shows
	resourceBytes = 256              // overhead of a resource in a snapshot
)

// amount counts resources.
type amount struct{ clusters, endpoints, bytes int }

func (a amount) plus(b amount) amount {
	return amount{a.clusters + b.clusters, a.endpoints + b.endpoints, a.bytes + b.bytes}
}

func (a amount) minus(b amount) amount { return a.plus(amount{-b.clusters, -b.endpoints, -b.bytes}) }

// amount returns what a resource counts for; nothing for nil.
func (t *table) amount(name string, c *content) (a amount) {
	if c == nil {
		return a
	}
	if t.wildcard() {
		a.clusters = 1
	}
	a.endpoints = c.decoded.endpoints
	a.bytes = len(c.packed.GetValue()) + len(name) + len(c.version) + resourceBytes
	return a
}

// stock counts what a source has in use, over both types, and knows the limits. Guarded
// by Source.mu.
type stock struct {
	has, most amount
	shown     int // bytes of refused resources
	perOne    int // the most endpoints of one resource
}

func newStock(o *Options) *stock {
	return &stock{
		most: amount{
			clusters: cmp.Or(o.MaxClusters, math.MaxInt), endpoints: cmp.Or(o.MaxEndpoints, math.MaxInt), bytes: maxStockBytes,
		},
		perOne: cmp.Or(o.MaxClusterEndpoints, envoyrules.MaxEndpoints),
	}
}

// refusal says which limit a resource exceeds; empty if none.
func (s *stock) refusal(after, one amount) string {
	const less = "have it send fewer, or raise limits.%s in hdsd's configuration and restart it"
	switch {
	case after.clusters > s.most.clusters:
		return fmt.Sprintf("the management server has %d clusters already, and no more are taken: "+less, s.most.clusters, "max_source_clusters")
	case after.endpoints > s.most.endpoints:
		return fmt.Sprintf("with its %d endpoints, the management server would have %d, and no more than %d are taken: "+less,
			one.endpoints, after.endpoints, s.most.endpoints, "max_source_endpoints")
	case after.bytes > s.most.bytes:
		return fmt.Sprintf("with its %d bytes, the management server would have %d in all, and no more than %d are taken: make several sources of it",
			one.bytes, after.bytes, s.most.bytes)
	default:
		return ""
	}
}

// fullness returns the used share of the fullest limit.
func (s *stock) fullness() float64 {
	return max(float64(s.has.clusters)/float64(s.most.clusters), float64(s.has.endpoints)/float64(s.most.endpoints), float64(s.has.bytes)/float64(s.most.bytes))
}

// use puts a resource into use; nil takes it out. Abandoned resources do not count.
func (t *table) use(e *entry, c *content) {
	t.stock.has = t.stock.has.minus(t.counted(e))
	e.good = c
	t.stock.has = t.stock.has.plus(t.counted(e))
}

// counted returns what an entry counts for in the stock.
func (t *table) counted(e *entry) amount {
	if e == nil || !t.subscribed(e) {
		return amount{}
	}
	return t.amount(e.name, e.good)
}

// setRefusal records why a resource is refused; nil clears it. It drops what is too large to
// show.
func (t *table) setRefusal(e *entry, r *refusal) {
	t.stock.shown -= len(e.refused.body())
	if r != nil && t.stock.shown+len(r.body()) > maxShownBytes {
		r.packed = nil
	}
	t.stock.shown += len(r.body())
	e.refused = r
}

func (r *refusal) body() []byte {
	if r == nil {
		return nil
	}
	return r.packed.GetValue()
}

// fit refuses what exceeds the limits. Of the resources that grow, known ones have
// precedence, then the first by name.
func (t *table) fit(candidates map[string]*candidate, removed map[string]bool, full bool) {
	has := t.stock.has.minus(t.removals(candidates, removed, full))
	after := has
	for _, c := range candidates {
		after = after.plus(t.growth(c))
	}
	if t.stock.refusal(after, amount{}) == "" {
		return
	}
	grows := func(c *candidate) bool {
		g := t.growth(c)
		return g.clusters > 0 || g.endpoints > 0 || g.bytes > 0
	}
	order := slices.SortedFunc(maps.Values(candidates), func(a, b *candidate) int {
		return cmp.Or(first(!grows(a), !grows(b)), first(a.known() != nil, b.known() != nil), strings.Compare(a.name, b.name))
	})
	for _, c := range order {
		after := has.plus(t.growth(c))
		if reason := t.stock.refusal(after, t.amount(c.name, c.content)); reason != "" && grows(c) {
			c.content, c.wrong = nil, reason
			continue
		}
		has = after
	}
}

// first orders true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// growth returns what a candidate adds to the stock.
func (t *table) growth(c *candidate) amount {
	if c.content == nil || c.entry != nil && !t.subscribed(c.entry) {
		return amount{}
	}
	return t.amount(c.name, c.content).minus(t.amount(c.name, c.known()))
}

// removals returns what an update takes out of use.
func (t *table) removals(candidates map[string]*candidate, removed map[string]bool, full bool) (a amount) {
	if full {
		for name, e := range t.entries {
			if candidates[name] == nil {
				a = a.plus(t.counted(e))
			}
		}
		return a
	}
	for name := range removed {
		if candidates[name] == nil {
			a = a.plus(t.counted(t.entries[name]))
		}
	}
	return a
}
