package clusters

import (
	"cmp"
	"maps"
	"slices"
	"time"
	"weak"

	"hdsd/catalog"
	"hdsd/source"
)

const (
	// Patience is how long the clusters of a lost replica stay.
	Patience = 10 * time.Minute

	// maxPrepared bounds the endpoints that a call of Next reads and prepares, but for the last cluster.
	maxPrepared = 20_000
)

// Union is the clusters of all replicas, as the leader checks them.
type Union struct {
	id       string // of the leader
	budget   int    // of a call of Next, in endpoints to read and to prepare
	own      *Own
	replicas map[string]*listing // without the leader

	dirty    map[string]bool              // names whose cluster may have changed
	current  map[string]*catalog.Cluster  // that the caller has, by name
	sources  map[string][]*source.Cluster // the versions of those that are not the leader's
	rules    *catalog.Rules
	told     bool // Next has returned something
	answered map[string]bool
	complete bool

	moved       bool // differences may have changed
	differences []Difference
}

// listing is what a replica has told.
type listing struct {
	clusters map[string]listed
	unknown  int               // of clusters, those without a content
	wanted   map[string]bool   // names whose content has yet to come, and whether the leader has yet to ask for it
	unlisted map[string]bool   // names that the list in progress has yet to confirm; nil: no list is in progress
	earlier  map[string]listed // what it had before it began its list anew, of sources that have yet to answer
	whole    bool              // it has told all names once
	answered []string
	complete bool
	lost     time.Time            // zero: it has a link
	differs  map[string]time.Time // names of clusters that differ from the leader's, and since when
}

// listed is a cluster of another replica.
type listed struct {
	digest  Digest          // of the version that the replica has
	content *source.Cluster // of the latest known version; nil: none is known
	known   Digest          // of content
}

// NewUnion returns a Union of the clusters of the leader, whose own ones it reads from then on.
func NewUnion(id string, o *Own) *Union {
	u := &Union{id: id, budget: maxPrepared, own: o, replicas: map[string]*listing{}, dirty: map[string]bool{}, current: map[string]*catalog.Cluster{}, sources: map[string][]*source.Cluster{}}
	for name := range o.clusters {
		u.dirty[name] = true
	}
	return u
}

// OwnChanged notes a change of the leader's own clusters, which Own has already.
func (u *Union) OwnChanged(now time.Time, d *catalog.Delivery) {
	for _, name := range d.Removed {
		u.change(now, name)
	}
	for _, change := range d.Changed {
		u.change(now, change.Cluster.Source.Name)
	}
	if u.rules != nil && u.rules != d.Rules {
		for name := range u.sources {
			u.dirty[name] = true
		}
	}
}

// change notes that a cluster of the leader has changed.
func (u *Union) change(now time.Time, name string) {
	u.dirty[name] = true
	for _, l := range u.replicas {
		u.compare(now, l, name)
	}
}

// compare notes whether a cluster of another replica differs from the leader's.
func (u *Union) compare(now time.Time, l *listing, name string) {
	c := u.own.clusters[name]
	k, ok := l.clusters[name]
	_, known := l.differs[name]
	switch {
	case c.isListed() == ok && (!ok || c.digest == k.digest):
		u.moved = u.moved || known
		delete(l.differs, name)
	case !known:
		u.moved = true
		l.differs[name] = now
	}
}

// Apply applies what a replica tells. A lost or unknown one tells all of its clusters first.
func (u *Union) Apply(now time.Time, replica string, m *Update) {
	l := u.replicas[replica]
	if !m.Begin && (l == nil || !l.lost.IsZero()) {
		return
	}
	if l == nil {
		l = &listing{clusters: map[string]listed{}, wanted: map[string]bool{}, earlier: map[string]listed{}, differs: map[string]time.Time{}}
		u.replicas[replica] = l
	}
	if m.Begin {
		l.lost, l.unlisted, u.moved = time.Time{}, map[string]bool{}, true
		for name := range l.clusters {
			l.unlisted[name] = true
		}
	}
	for i := range m.Changed {
		u.set(now, l, &m.Changed[i])
	}
	for _, name := range m.Removed {
		u.remove(now, l, name)
	}
	if m.End {
		for name := range l.unlisted {
			u.remove(now, l, name)
		}
		u.dropEarlier(l, m)
		if l.unlisted = nil; !l.whole {
			l.whole, u.moved = true, true
			for name := range u.own.clusters {
				u.compare(now, l, name)
			}
		}
		l.answered, l.complete = m.Answered, m.Complete
	}
}

// set sets a cluster of a replica.
func (u *Union) set(now time.Time, l *listing, m *Listing) {
	before, had := l.clusters[m.Name]
	next := listed{m.Digest, m.Cluster, m.Digest}
	if next.content == nil {
		next.content = u.find(m.Name, m.Digest)
	}
	delete(l.unlisted, m.Name)
	if delete(l.wanted, m.Name); next.content == nil {
		l.wanted[m.Name] = true
		next.content, next.known = before.content, before.known
	}
	if l.clusters[m.Name] = next; before.content != next.content {
		u.dirty[m.Name] = true
		l.keep(m.Name, before)
	}
	if had && before.content == nil {
		l.unknown--
	}
	if next.content == nil {
		l.unknown++
	}
	u.compare(now, l, m.Name)
}

// find returns a cluster with a digest that some replica has; nil if the leader knows none.
func (u *Union) find(name string, digest Digest) *source.Cluster {
	if c := u.own.clusters[name]; c.isListed() && c.digest == digest {
		return c.Source
	}
	for _, l := range u.replicas {
		for _, k := range []listed{l.clusters[name], l.earlier[name]} {
			if k.content != nil && k.known == digest {
				return k.content
			}
		}
	}
	return nil
}

func (u *Union) remove(now time.Time, l *listing, name string) {
	if k, ok := l.clusters[name]; ok {
		l.keep(name, k)
		delete(l.clusters, name)
		if u.dirty[name] = true; k.content == nil {
			l.unknown--
		}
	}
	delete(l.wanted, name)
	delete(l.unlisted, name)
	u.compare(now, l, name)
}

// keep keeps what a replica had while its list is in progress: it may have restarted, and its sources have told it
// less so far.
func (l *listing) keep(name string, k listed) {
	if l.unlisted == nil || k.content == nil {
		return
	}
	if e, ok := l.earlier[name]; ok && e.known != k.known {
		merged, _ := merge([]*source.Cluster{k.content, e.content})
		k = listed{content: merged, known: DigestOf(merged)}
	}
	l.earlier[name] = k
}

// dropEarlier drops what a replica had earlier of the sources that have answered since, but for clusters whose content
// has yet to come.
func (u *Union) dropEarlier(l *listing, m *Update) {
	answers := func(name string) bool {
		_, found := slices.BinarySearch(m.Answered, name)
		return found
	}
	for name, e := range l.earlier {
		if _, wanted := l.wanted[name]; wanted {
			continue
		}
		if m.Complete || answers(e.content.Source) && answers(e.content.EndpointSource()) {
			delete(l.earlier, name)
			u.dirty[name] = true
		}
	}
}

// Lose notes that a replica is lost. Its clusters stay until Forget.
func (u *Union) Lose(now time.Time, replica string) {
	if l := u.replicas[replica]; l != nil && l.lost.IsZero() {
		l.lost, u.moved = now, true
		clear(l.wanted)
	}
}

// Forget forgets the clusters of replicas that have been lost for long.
func (u *Union) Forget(now time.Time) {
	for replica, l := range u.replicas {
		if !l.lost.IsZero() && now.Sub(l.lost) >= Patience {
			for name := range l.clusters {
				u.dirty[name] = true
			}
			for name := range l.earlier {
				u.dirty[name] = true
			}
			delete(u.replicas, replica)
		}
	}
}

// Knows reports whether a replica has told all of its clusters, in this version or an earlier one.
func (u *Union) Knows(replica string) bool {
	l := u.replicas[replica]
	return l != nil && l.whole && l.unknown == 0
}

// Wanted returns the names of clusters whose content a replica is to tell, sorted, each once: at most an Update of them.
func (u *Union) Wanted(replica string) (names []string) {
	l := u.replicas[replica]
	if l == nil || !l.lost.IsZero() || len(l.wanted) == 0 {
		return nil
	}
	for name, unasked := range l.wanted {
		if unasked {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = names[:min(len(names), u.own.listings)]
	for _, name := range names {
		l.wanted[name] = false
	}
	return names
}

// Difference says that a replica has other versions of some clusters than the leader, has some alone, or lacks some.
type Difference struct {
	Replica string
	Count   int      // of the clusters
	Names   []string // the first three, sorted
	Since   time.Time
}

// Differences tells which replicas differ from the leader, sorted, without the clusters of a source, and those whose
// names each replica resolves.
func (u *Union) Differences(without string) []Difference {
	if !u.moved {
		return u.differences
	}
	u.moved, u.differences = false, nil
	for _, replica := range slices.Sorted(maps.Keys(u.replicas)) {
		l := u.replicas[replica]
		if !l.lost.IsZero() || !l.whole {
			continue
		}
		d := Difference{Replica: replica}
		for name, since := range l.differs {
			c, k := u.own.clusters[name], l.clusters[name]
			example := cmp.Or(c.source(), k.content)
			if example != nil && (example.Source == without || example.Names != "") {
				continue
			}
			if d.Count++; d.Since.IsZero() || since.Before(d.Since) {
				d.Since = since
			}
			if i, _ := slices.BinarySearch(d.Names, name); i < 3 {
				d.Names = slices.Insert(d.Names, i, name)
				d.Names = d.Names[:min(len(d.Names), 3)]
			}
		}
		if d.Count > 0 {
			u.differences = append(u.differences, d)
		}
	}
	return u.differences
}

// Due reports whether Next has clusters.
func (u *Union) Due() bool { return len(u.dirty) > 0 }

// Next returns the next change of the clusters for the Machine; nil if there is none. Without known, there may be
// replicas that have yet to tell theirs.
func (u *Union) Next(known bool) *catalog.Delivery {
	d := &catalog.Delivery{Rules: u.own.latest.Rules}
	prepared := 0
	for _, name := range slices.Sorted(maps.Keys(u.dirty)) {
		if prepared >= u.budget {
			break
		}
		delete(u.dirty, name)
		before := u.current[name]
		next, renewed, endpoints := u.cluster(name, before, d.Rules)
		prepared += endpoints
		switch next {
		case before:
		case nil:
			delete(u.current, name)
			d.Removed = append(d.Removed, name)
		default:
			u.current[name] = next
			d.Changed = append(d.Changed, catalog.Change{Cluster: next, Renewed: renewed})
		}
	}
	answered, complete := u.answers(known && len(u.dirty) == 0)
	if u.told && len(d.Changed)+len(d.Removed) == 0 && u.rules == d.Rules && u.complete == complete && maps.Equal(u.answered, answered) {
		return nil
	}
	u.told, u.rules, u.answered, u.complete = true, d.Rules, answered, complete
	d.Answered, d.Complete = answered, complete
	return d
}

// answers returns the sources that have answered at all replicas, and whether all have.
func (u *Union) answers(known bool) (answered map[string]bool, complete bool) {
	if !known {
		return map[string]bool{}, false
	}
	answered, complete = maps.Clone(u.own.latest.Answered), u.own.latest.Complete
	for _, l := range u.replicas {
		if !l.whole {
			continue
		}
		complete = complete && l.complete
		maps.DeleteFunc(answered, func(name string, _ bool) bool {
			_, found := slices.BinarySearch(l.answered, name)
			return !found
		})
	}
	return answered, complete
}

// cluster returns a cluster of the union, nil if no replica has it; its changes since before, and how many endpoints
// it had to read and to prepare.
func (u *Union) cluster(name string, before *catalog.Cluster, rules *catalog.Rules) (next *catalog.Cluster, renewed []bool, endpoints int) {
	c := u.own.clusters[name]
	versions := u.versions(name, &c)
	if len(versions) == 0 && c.Cluster != nil {
		versions = []*source.Cluster{c.Source} // published as it is
	}
	if len(versions) == 0 {
		delete(u.sources, name)
		return nil, nil, 0
	}
	isRejected := versions[0] == c.source() && c.Rejected != ""
	if before != nil && slices.Equal(u.sources[name], versions) && before.UpToDate(rules) && !isRejected && before.Rejected == "" {
		return before, nil, 0
	}
	merged, endpoints := merge(versions)
	if next = c.Cluster; merged != c.source() {
		next = catalog.Prepare(merged, rules)
		if endpoints += len(next.Endpoints); isRejected {
			next.Latest, next.Rejected = c.Latest, c.Rejected
		}
	}
	delete(u.sources, name)
	switch {
	case next == before:
	case next == c.Cluster && weak.Make(before) == c.before:
		renewed = c.renewed
	default:
		renewed = catalog.ChangedProbes(before, next)
	}
	if next != c.Cluster {
		u.sources[name] = versions
	}
	return next, renewed, endpoints
}

// source returns the source's cluster; nil if there is none.
func (c *own) source() *source.Cluster {
	if c.Cluster == nil {
		return nil
	}
	return c.Source
}

// version is a version of a cluster.
type version struct {
	digest  Digest
	cluster *source.Cluster
	count   int // of the replicas with it; 0: one had it earlier
}

// versions returns the versions of a cluster, that of most replicas first, else that of the first replica by id. So
// each leader has the same ones.
func (u *Union) versions(name string, c *own) []*source.Cluster {
	var all []version
	add := func(digest Digest, cluster *source.Cluster, count int) {
		if c.isListed() && digest == c.digest {
			cluster = c.Source // which is prepared
		}
		if i := slices.IndexFunc(all, func(v version) bool { return v.digest == digest }); i >= 0 {
			all[i].count += count
		} else {
			all = append(all, version{digest, cluster, count})
		}
	}
	replicas := slices.Sorted(maps.Keys(u.replicas))
	own, _ := slices.BinarySearch(replicas, u.id)
	replicas = slices.Insert(replicas, own, u.id)
	for _, replica := range replicas {
		if replica != u.id {
			if k := u.replicas[replica].clusters[name]; k.content != nil && k.content.Rejected == "" {
				add(k.known, k.content, 1)
			}
		} else if c.isListed() {
			add(c.digest, c.Source, 1)
		}
	}
	for _, replica := range replicas {
		if replica == u.id {
			continue
		}
		if e := u.replicas[replica].earlier[name]; e.content != nil && e.content.Rejected == "" {
			add(e.known, e.content, 0)
		}
	}
	slices.SortStableFunc(all, func(a, b version) int { return cmp.Compare(b.count, a.count) })
	clusters := make([]*source.Cluster, len(all))
	for i, v := range all {
		clusters[i] = v.cluster
	}
	return clusters
}
