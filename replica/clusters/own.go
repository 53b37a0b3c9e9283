package clusters

import (
	"cmp"
	"maps"
	"slices"
	"weak"

	"google.golang.org/protobuf/proto"

	"hdsd/catalog"
	"hdsd/source"
)

// Listing is a cluster of a replica.
type Listing struct {
	Name    string
	Digest  Digest
	Cluster *source.Cluster // nil: the leader asks for it if it needs it
}

// Update tells the leader about the clusters of a replica.
type Update struct {
	Begin   bool      // the replica begins to list all of its clusters
	Changed []Listing // new and changed ones, or their contents; sorted by name
	Removed []string  // sorted
	End     bool      // the leader knows the names of all, and the following fields are set

	Answered []string // sources that have answered in full, sorted
	Complete bool     // all sources have
}

const (
	// maxListings and maxContent bound an Update: the number of its clusters, and the bytes of their contents, but
	// for the last one.
	maxListings = 20_000
	maxContent  = 4 << 20
)

// Own is the clusters of a replica's own sources, and what the leader has yet to hear of them.
type Own struct {
	listings int // of an Update
	clusters map[string]own
	latest   *catalog.Delivery // nil: none yet

	begun  bool            // the leader has heard the beginning of the list
	ended  bool            // it knows everything, but for what follows
	dirty  map[string]bool // names to tell
	wanted map[string]bool // names with a content to tell
}

// own is a cluster of this replica.
type own struct {
	*catalog.Cluster
	digest  Digest
	renewed []bool                        // catalog.Change.Renewed, compared with before
	before  weak.Pointer[catalog.Cluster] // zero: none
}

// NewOwn returns an Own without clusters.
func NewOwn() *Own {
	return &Own{listings: maxListings, clusters: map[string]own{}, dirty: map[string]bool{}, wanted: map[string]bool{}}
}

// Deliver applies a change of the clusters.
func (o *Own) Deliver(d *catalog.Delivery) {
	for _, name := range d.Removed {
		delete(o.clusters, name)
		o.note(name)
	}
	for _, change := range d.Changed {
		name := change.Cluster.Source.Name
		before, had := o.clusters[name]
		next := own{change.Cluster, before.digest, change.Renewed, weak.Make(before.Cluster)}
		if !had || before.Source != change.Cluster.Source {
			next.digest = DigestOf(change.Cluster.Source)
		}
		if o.clusters[name] = next; !had || before.digest != next.digest || before.isListed() != next.isListed() {
			o.note(name)
		}
	}
	if o.latest == nil || o.latest.Complete != d.Complete || !maps.Equal(o.latest.Answered, d.Answered) {
		o.ended = false
	}
	o.latest = &catalog.Delivery{Rules: d.Rules, Answered: d.Answered, Complete: d.Complete}
}

// note notes a change to tell. A leader that has yet to hear of anything hears of all clusters.
func (o *Own) note(name string) {
	if o.begun {
		o.dirty[name] = true
	}
}

// isListed reports whether the leader hears of a cluster: one with health checks. The others are published as
// they are.
func (c *own) isListed() bool {
	return c.Cluster != nil && len(c.Source.HealthChecks) > 0 && c.Source.Rejected == ""
}

// Delivered reports whether the sources have told anything yet.
func (o *Own) Delivered() bool { return o.latest != nil }

// Complete reports whether all sources have told all of their clusters.
func (o *Own) Complete() bool { return o.latest != nil && o.latest.Complete }

// Restart lets the next Update begin the list of all clusters, for another leader. Until then, changes need no memory.
func (o *Own) Restart() {
	o.begun, o.ended = false, false
	clear(o.dirty)
	clear(o.wanted)
}

// begin begins the list of all clusters.
func (o *Own) begin() {
	o.begun = true
	for name, c := range o.clusters {
		if c.isListed() {
			o.dirty[name] = true
		}
	}
}

// Want notes that the leader needs the contents of clusters.
func (o *Own) Want(names []string) {
	for _, name := range names {
		o.wanted[name] = true
	}
}

// Due reports whether there is something to tell.
func (o *Own) Due() bool {
	return !o.begun || o.latest != nil && (!o.ended || len(o.dirty)+len(o.wanted) > 0)
}

// Take returns the next Update; nil if there is nothing to tell.
func (o *Own) Take() *Update {
	if !o.Due() {
		return nil
	}
	u := &Update{Begin: !o.begun}
	if u.Begin {
		o.begin()
	}
	if o.latest == nil {
		return u
	}
	size := 0
	for _, name := range first(o.wanted, o.listings) {
		if size >= maxContent {
			break
		}
		delete(o.wanted, name)
		if c := o.clusters[name]; c.isListed() {
			delete(o.dirty, name)
			u.Changed = append(u.Changed, Listing{name, c.digest, c.Source})
			size += len(c.Source.Assignment.Wire()) + proto.Size(c.Source.Config)
		}
	}
	for _, name := range first(o.dirty, o.listings-len(u.Changed)) {
		delete(o.dirty, name)
		if c := o.clusters[name]; c.isListed() {
			u.Changed = append(u.Changed, Listing{Name: name, Digest: c.digest})
		} else {
			u.Removed = append(u.Removed, name)
		}
	}
	slices.SortFunc(u.Changed, func(a, b Listing) int { return cmp.Compare(a.Name, b.Name) })
	if u.End = len(o.dirty) == 0; u.End {
		o.ended = true
		u.Complete = o.latest.Complete
		for _, name := range slices.Sorted(maps.Keys(o.latest.Answered)) {
			if o.latest.Answered[name] {
				u.Answered = append(u.Answered, name)
			}
		}
	}
	return u
}

// first returns the first of some names, sorted.
func first(names map[string]bool, limit int) []string {
	sorted := slices.Sorted(maps.Keys(names))
	return sorted[:min(limit, len(sorted))]
}
