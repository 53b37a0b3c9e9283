package attention

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hdsd/health"
)

// Kind is a kind of item.
type Kind string

// Kinds, worst first.
const (
	NoCheckers      Kind = "NO_CHECKERS"
	NotReady        Kind = "NOT_READY"
	NoLeader        Kind = "NO_LEADER"
	EngineLost      Kind = "ENGINE_LOST"
	ClusterDown     Kind = "CLUSTER_DOWN"
	ZoneDown        Kind = "ZONE_DOWN"
	NoHealthy       Kind = "NO_HEALTHY_ENDPOINT"
	Panic           Kind = "PANIC"
	ClusterHalfDown Kind = "CLUSTER_HALF_DOWN"
	NotChecked      Kind = "NOT_CHECKED"
	TooFewCheckers  Kind = "TOO_FEW_CHECKERS"
	ReplicaLost     Kind = "REPLICA_LOST"
	HealthHeld      Kind = "HEALTH_HELD"
	ReplicasDiffer  Kind = "REPLICAS_DIFFER"
	CheckerDoubted  Kind = "CHECKER_DOUBTED"
	CheckerSilent   Kind = "CHECKER_SILENT"
	CheckerBlind    Kind = "CHECKER_BLIND"
	PlanesRefusing  Kind = "DATA_PLANES_REFUSING"
	SourceBroken    Kind = "SOURCE_BROKEN"
	ShrinkageHeld   Kind = "SHRINKAGE_HELD"
	HistoryFailing  Kind = "HISTORY_FAILING"
	MessagesWait    Kind = "MESSAGES_WAIT"
	ProbesLimited   Kind = "PROBE_LIMIT_REACHED"
	Frozen          Kind = "FROZEN"
)

// order has the kinds as Of lists them.
var order = []Kind{
	NoCheckers, NotReady, NoLeader, EngineLost, ClusterDown, NoHealthy, ZoneDown, Panic, ClusterHalfDown, NotChecked, TooFewCheckers, ReplicaLost,
	HealthHeld, CheckerDoubted, CheckerSilent, CheckerBlind, PlanesRefusing, SourceBroken, ShrinkageHeld, ReplicasDiffer, HistoryFailing, MessagesWait, ProbesLimited, Frozen,
}

// Compare orders kinds, the worst first and those of a newer release last.
func (k Kind) Compare(other Kind) int {
	rank := func(k Kind) int { return (slices.Index(order, k) + len(order) + 1) % (len(order) + 1) }
	return cmp.Compare(rank(k), rank(other))
}

// Item is a matter that needs attention.
type Item struct {
	Kind    Kind
	Cluster string // for kinds of clusters
	Version string // of the Cluster; empty for the first
	Zone    string // "region/zone", of ZoneDown
	Name    string // of the checker, the source or the replica, for their kinds
	Since   time.Time
	Text    string
	Command string // begins with "hdsd "
}

// Group is a cluster or a zone whose endpoints are counted.
type Group struct {
	Name            string
	Version         string // of a cluster, where the relay has several; empty for the first
	Endpoints, Down int
	Up, Unknown     int       // of a cluster: healthy or degraded ones, and ones without a verdict
	Since           time.Time // when the last one that is down went down
	LastUp          time.Time // of a cluster: when the last of the others was up
}

// IsIdle reports whether all endpoints of a cluster are draining or down, not all down.
func (g *Group) IsIdle() bool { return g.Up+g.Unknown == 0 && g.Down < g.Endpoints }

// Named is a cluster, a checker or a source with a problem.
type Named struct {
	Name, Reason string
	Version      string // of a cluster, as of a Group
	Since        time.Time
}

// Checkers are checkers with a problem.
type Checkers struct{ Doubted, Silent, Blind []Named }

// Facts are the input of Of. A zero time means that a fact does not hold.
type Facts struct {
	Unwatched time.Time // start of the time without connected checkers
	TooFew    Named     // why the remaining checkers have no majority; no name
	NotReady  Named     // why hdsd is not ready; no name
	Clusters  []Group   // those with an endpoint that is down
	Zones     []Group   // all zones that have a name
	Panics    []Named   // clusters for which Envoys are in panic, not those that are wholly down
	Unchecked []Named   // clusters that hdsd does not check in full

	Held      int       // endpoints without a believed vote
	HeldSince time.Time // the first of them

	Checkers        Checkers
	Broken, Shrunk  []Named // sources
	Replication     Replication
	Refusing        Named // why data planes refuse a response; no name
	History, Frozen Named // no name
	Waiting         Named // the caller whose message waits longest for room
	WaitingAnswers  Named // the caller whose response of the relay's control plane waits longest for room
	ProbeLimit      Named // why endpoints wait for room at their address; no name
}

// RefusingCommand is the next command for PlanesRefusing.
const RefusingCommand = "hdsd clients"

// BrokenText is the text of SourceBroken.
func BrokenText(source, problem string) string { return "source " + source + ": " + problem }

// State is the extent to which a cluster is down.
type State int

// States. A cluster without a believed vote is Unobserved, whatever its last health. A NoneHealthy
// one has endpoints that drain or have no verdict, and no healthy or degraded one. An Unchecked one
// has health checks, but hdsd may check none of its endpoints.
const (
	OK State = iota
	SomeDown
	HalfDown
	AllDown
	Unobserved
	NoneHealthy
	Unchecked
)

// StateOf returns the state of a cluster from numbers of its endpoints: all, those that are down,
// those that are up (healthy or degraded), and those with a believed vote or an override.
func StateOf(endpoints, down, up, observed int) State {
	switch {
	case observed == 0:
		return Unobserved
	case down == endpoints:
		return AllDown
	case up == 0:
		return NoneHealthy
	case down == 0:
		return OK
	case 2*down >= endpoints:
		return HalfDown
	}
	return SomeDown
}

// String returns the state's name for programs.
func (s State) String() string {
	return []string{"OK", "SOME_DOWN", "HALF_DOWN", "ALL_DOWN", "UNOBSERVED", "NONE_HEALTHY", "UNCHECKED"}[s]
}

// smallestZone is the smallest number of endpoints with which a zone can be down as a whole.
const smallestZone = 2

// Of derives the items that need attention, worst first.
func Of(f *Facts) []Item {
	var items []Item
	if !f.Unwatched.IsZero() {
		items = append(items, Item{
			Kind: NoCheckers, Since: f.Unwatched, Command: "hdsd checkers",
			Text: "no checker is connected: nothing is checked, and health stays what it was last; connect a checker",
		})
	}
	if reason := f.NotReady.Reason; reason != "" {
		items = append(items, Item{Kind: NotReady, Since: f.NotReady.Since, Command: "hdsd clients", Text: "not ready: " + reason})
	}
	if reason := f.Replication.NoLeader.Reason; reason != "" {
		items = append(items, Item{Kind: NoLeader, Since: f.Replication.NoLeader.Since, Command: ReplicasCommand, Text: NoLeaderText(reason)})
	}
	if reason := f.Replication.EngineLost.Reason; reason != "" {
		items = append(items, Item{Kind: EngineLost, Since: f.Replication.EngineLost.Since, Command: ReplicasCommand, Text: EngineLostText(reason)})
	}
	items = append(items, clusters(f.Clusters, ClusterDown)...)
	items = append(items, clusters(f.Clusters, NoHealthy)...)
	items = append(items, zones(f.Zones)...)
	items = append(items, named(Panic, f.Panics, "Envoys are in panic for %d clusters")...)
	items = append(items, clusters(f.Clusters, ClusterHalfDown)...)
	if f.Unwatched.IsZero() { // otherwise Unwatched covers it
		items = append(items, named(NotChecked, f.Unchecked, "hdsd does not check %d clusters in full")...)
	}
	if reason := f.TooFew.Reason; reason != "" && f.Unwatched.IsZero() {
		items = append(items, Item{Kind: TooFewCheckers, Since: f.TooFew.Since, Command: "hdsd checkers", Text: reason})
	}
	for _, r := range f.Replication.Lost {
		items = append(items, Item{Kind: ReplicaLost, Name: r.Name, Since: r.Since, Command: ReplicasCommand, Text: ReplicaLostText(r.Name, r.Reason)})
	}
	if f.Held > 0 && f.Unwatched.IsZero() {
		items = append(items, Item{
			Kind: HealthHeld, Since: f.HeldSince, Command: "hdsd endpoints",
			Text: fmt.Sprintf("health of %s is held: no believed vote stands behind it", endpoints(f.Held)),
		})
	}
	for _, entry := range []struct {
		kind  Kind
		word  string
		named []Named
	}{{CheckerDoubted, "is not believed", f.Checkers.Doubted}, {CheckerSilent, "is silent", f.Checkers.Silent}, {CheckerBlind, "is blind", f.Checkers.Blind}} {
		for _, k := range entry.named {
			items = append(items, Item{
				Kind: entry.kind, Name: k.Name, Since: k.Since, Command: Checker(k.Name),
				Text: fmt.Sprintf("checker %s %s: %s", k.Name, entry.word, k.Reason),
			})
		}
	}
	if reason := f.Refusing.Reason; reason != "" {
		items = append(items, Item{Kind: PlanesRefusing, Since: f.Refusing.Since, Command: RefusingCommand, Text: reason})
	}
	for _, s := range f.Broken {
		items = append(items, Item{Kind: SourceBroken, Name: s.Name, Since: s.Since, Command: "hdsd source list", Text: BrokenText(s.Name, s.Reason)})
	}
	for _, s := range f.Shrunk {
		items = append(items, Item{
			Kind: ShrinkageHeld, Name: s.Name, Since: s.Since, Command: "hdsd source list",
			Text: fmt.Sprintf("what source %s took away is %s", s.Name, s.Reason),
		})
	}
	for _, r := range f.Replication.Differ {
		items = append(items, Item{Kind: ReplicasDiffer, Name: r.Name, Since: r.Since, Command: "hdsd source list", Text: ReplicasDifferText(r.Name, r.Reason)})
	}
	if reason := f.History.Reason; reason != "" {
		items = append(items, Item{Kind: HistoryFailing, Since: f.History.Since, Command: "hdsd history --newest-first --limit 20", Text: "history is not being written: " + reason})
	}
	for _, queue := range []struct {
		waiting Named
		command string
	}{{f.Waiting, "hdsd checkers"}, {f.WaitingAnswers, "hdsd clients"}} {
		if w := queue.waiting; w.Reason != "" {
			items = append(items, Item{Kind: MessagesWait, Since: w.Since, Command: queue.command, Text: w.Reason + ", " + w.Name + " longest: raise limits.max_bytes_in_flight if that lasts"})
		}
	}
	if reason := f.ProbeLimit.Reason; reason != "" {
		items = append(items, Item{Kind: ProbesLimited, Since: f.ProbeLimit.Since, Command: "hdsd clusters", Text: reason})
	}
	if reason := f.Frozen.Reason; reason != "" {
		items = append(items, Item{Kind: Frozen, Since: f.Frozen.Since, Command: "hdsd freeze --show", Text: reason})
	}
	return items
}

// IdleText is the text of NoHealthy.
func IdleText(g *Group) string {
	return fmt.Sprintf("cluster %s: no healthy endpoint: %d of %s draining, %d down", health.TitleOf(g.Name, g.Version), g.Endpoints-g.Down, endpoints(g.Endpoints), g.Down)
}

// kindOf returns the kind of item for a cluster as a whole; empty if it needs none.
func kindOf(g *Group) Kind {
	switch {
	case g.Down == g.Endpoints:
		return ClusterDown
	case g.IsIdle():
		return NoHealthy
	case g.Down > 0 && 2*g.Down >= g.Endpoints:
		return ClusterHalfDown
	}
	return ""
}

// clusters returns the items of a kind. Clusters with most endpoints down come first.
func clusters(groups []Group, kind Kind) (items []Item) {
	for _, g := range worstFirst(groups) {
		if kindOf(&g) != kind {
			continue
		}
		i := Item{
			Kind: kind, Cluster: g.Name, Version: g.Version, Since: g.Since, Command: Cluster(g.Name),
			Text: fmt.Sprintf("cluster %s: %d of %s down", health.TitleOf(g.Name, g.Version), g.Down, endpoints(g.Endpoints)),
		}
		if kind == NoHealthy {
			i.Since, i.Text = g.LastUp, IdleText(&g)
		}
		items = append(items, i)
	}
	return items
}

// zones returns items for zones that are wholly down. A single zone gets none, beside its
// clusters.
func zones(groups []Group) (items []Item) {
	if len(groups) < 2 {
		return nil
	}
	for _, g := range worstFirst(groups) {
		if g.Down == g.Endpoints && g.Endpoints >= smallestZone {
			items = append(items, Item{
				Kind: ZoneDown, Zone: g.Name, Since: g.Since, Command: Zone(g.Name),
				Text: fmt.Sprintf("zone %s: all of its %s down", g.Name, endpoints(g.Endpoints)),
			})
		}
	}
	return items
}

// maxItems bounds the clusters of a kind that have an item each.
const maxItems = 10

// named returns an item for each cluster, or one item for more than maxItems. Its text begins with
// a format that takes their number.
func named(kind Kind, clusters []Named, format string) (items []Item) {
	if len(clusters) <= maxItems {
		for _, k := range clusters {
			items = append(items, Item{
				Kind: kind, Cluster: k.Name, Version: k.Version, Since: k.Since, Command: Cluster(k.Name),
				Text: fmt.Sprintf("cluster %s: %s", health.TitleOf(k.Name, k.Version), k.Reason),
			})
		}
		return items
	}
	first := slices.MinFunc(clusters, func(a, b Named) int { return a.Since.Compare(b.Since) })
	return []Item{{
		Kind: kind, Since: first.Since, Command: "hdsd clusters",
		Text: fmt.Sprintf(format+"; cluster %s: %s", len(clusters), health.TitleOf(first.Name, first.Version), first.Reason),
	}}
}

func worstFirst(groups []Group) []Group {
	return slices.SortedFunc(slices.Values(groups), func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Down, a.Down), strings.Compare(a.Name, b.Name))
	})
}

func endpoints(n int) string {
	if n == 1 {
		return "1 endpoint"
	}
	return fmt.Sprintf("%d endpoints", n)
}
