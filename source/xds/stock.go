package xds

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"hdsd/envoy/rules"
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

// amount returns the amount of a resource; zero for nil.
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

// stock counts the resources in use of a source, over both types, and knows the limits. Guarded
// by Source.mu.
type stock struct {
	current, limit amount
	shown          int // bytes of refused resources
	perOne         int // the most endpoints of one resource
}

func newStock(o *Options) *stock {
	return &stock{
		limit: amount{
			clusters: cmp.Or(o.MaxClusters, math.MaxInt), endpoints: cmp.Or(o.MaxEndpoints, math.MaxInt), bytes: maxStockBytes,
		},
		perOne: cmp.Or(o.MaxClusterEndpoints, rules.MaxEndpoints),
	}
}

// refusal names the limit that a resource exceeds; empty if none.
func (s *stock) refusal(after, added amount) string {
	const advice = "have it send fewer, or raise limits.%s in hdsd's configuration and restart it"
	switch {
	case after.clusters > s.limit.clusters:
		return fmt.Sprintf("the management server has %d clusters already, and no more are taken: "+advice, s.limit.clusters, "max_source_clusters")
	case after.endpoints > s.limit.endpoints:
		return fmt.Sprintf("with its %d endpoints, the management server would have %d, and no more than %d are taken: "+advice,
			added.endpoints, after.endpoints, s.limit.endpoints, "max_source_endpoints")
	case after.bytes > s.limit.bytes:
		return fmt.Sprintf("with its %d bytes, the management server would have %d in all, and no more than %d are taken: make several sources of it",
			added.bytes, after.bytes, s.limit.bytes)
	default:
		return ""
	}
}

// fullness returns the used share of the fullest limit.
func (s *stock) fullness() float64 {
	return max(float64(s.current.clusters)/float64(s.limit.clusters), float64(s.current.endpoints)/float64(s.limit.endpoints), float64(s.current.bytes)/float64(s.limit.bytes))
}

// use puts a resource into use; nil takes it out. Abandoned resources do not count.
func (t *table) use(e *entry, c *content) {
	t.stock.current = t.stock.current.minus(t.counted(e))
	e.good = c
	t.stock.current = t.stock.current.plus(t.counted(e))
}

// counted returns the amount of an entry in the stock.
func (t *table) counted(e *entry) amount {
	if e == nil || !t.subscribed(e) {
		return amount{}
	}
	return t.amount(e.name, e.good)
}

// setRefusal records the reason of a refusal; nil clears it. It drops versions that are too
// large to show.
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

// fit refuses resources above the limits. Of the growing ones, known ones have precedence, then
// the first by name.
func (t *table) fit(candidates map[string]*candidate, removed map[string]bool, full bool) {
	current := t.stock.current.minus(t.removals(candidates, removed, full))
	after := current
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
		return cmp.Or(first(!grows(a), !grows(b)), first(a.previous() != nil, b.previous() != nil), strings.Compare(a.name, b.name))
	})
	for _, c := range order {
		after := current.plus(t.growth(c))
		if reason := t.stock.refusal(after, t.amount(c.name, c.content)); reason != "" && grows(c) {
			c.content, c.wrong = nil, reason
			continue
		}
		current = after
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

// growth returns the amount that a candidate adds to the stock.
func (t *table) growth(c *candidate) amount {
	if c.content == nil || c.entry != nil && !t.subscribed(c.entry) {
		return amount{}
	}
	return t.amount(c.name, c.content).minus(t.amount(c.name, c.previous()))
}

// removals returns the amount that an update takes out of use.
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
