package specifier

import (
	"cmp"
	"maps"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/health"
)

// Options says what is on the checkers' machines: what is not named here
// would end a checker that is told to use it.
type Options struct {
	Files      map[string]bool // paths that every checker can read
	SDSSecrets map[string]bool // names of secrets that every checker can get

	// Verbose has reasons name every problem, however many there are.
	Verbose bool

	// Forge changes how a cluster is checked after everything was reviewed, so
	// that tests can show what becomes of a mistake in the review. Nil: nothing.
	Forge func(cluster string, checks []*corev3.HealthCheck)
}

// Cluster is a source's cluster turned into what may be sent. It is not
// changed once made.
type Cluster struct {
	Name      string
	Needs     []health.Ability // what a checker must be able to do, sorted
	Endpoints []Endpoint       // what is checked, in the source's order
	Excluded  []Exclusion      // what is not, and why
	Timing    Timing
	forms     []*wireForm // the clusters on the wire that stand for it
}

// Endpoint is one that is checked.
type Endpoint struct {
	Key             health.Endpoint
	Locality, Index int // where it stands in the ClusterLoadAssignment
	form, rank      int // index in the cluster's forms; place among all that are sent
	message         *endpointv3.Endpoint
}

// Exclusion says what is not checked, and why. An empty Address stands for
// the whole cluster, whose Endpoints are then empty.
type Exclusion struct {
	Address, Reason string
	Locality, Index int // where it stands in the ClusterLoadAssignment
}

// Timing is what is needed to judge reports: of several health checks the
// slowest.
type Timing struct {
	Interval, Timeout, InitialJitter     time.Duration
	UnhealthyThreshold, HealthyThreshold uint32
}

// Translate turns a source's cluster into what may be sent to a checker.
// Whatever is wrong with its arguments ends in Excluded. An endpoint that
// is not to be checked (disable_active_health_check) is in neither list; one
// that the assignment holds twice in a locality is there once.
func Translate(name string, config *clusterv3.Cluster, a *endpointv3.ClusterLoadAssignment, checks []*corev3.HealthCheck, o Options) *Cluster {
	t := &translation{
		out: &Cluster{Name: name}, options: o, sockets: reviewSockets(config, o),
		forms: map[choice]int{}, seen: map[health.Endpoint]bool{},
	}
	if wrong := t.cluster(config, a, checks); wrong != "" {
		return &Cluster{Name: name, Excluded: []Exclusion{{Reason: wrong}}}
	}
	for i, l := range a.GetEndpoints() {
		t.locality(i, l)
		for j, e := range l.GetLbEndpoints() {
			t.endpoint(i, j, l, e)
		}
	}
	t.out.Needs = slices.Sorted(maps.Keys(t.needs))
	t.out.rank()
	return t.out
}

// ListedElsewhere tells whether a locality's endpoints are not in its
// lb_endpoints, which then count for nothing.
func ListedElsewhere(l *endpointv3.LocalityLbEndpoints) bool { return l.GetLbConfig() != nil }

// ReviewCluster says what is wrong with a cluster, its endpoints apart: each
// "field: what is wrong", or without a field.
func ReviewCluster(name string, config *clusterv3.Cluster, a *endpointv3.ClusterLoadAssignment, checks []*corev3.HealthCheck, o Options) []string {
	t := &translation{out: &Cluster{Name: name}, options: o, sockets: reviewSockets(config, o)}
	return t.look(config, a, checks).problems
}

// ReviewEndpoints says what is wrong with endpoints by themselves, whatever may
// be wrong with their cluster.
func ReviewEndpoints(name string, a *endpointv3.ClusterLoadAssignment, o Options) []Exclusion {
	t := &translation{out: &Cluster{Name: name}, options: o, seen: map[health.Endpoint]bool{}}
	for i, l := range a.GetEndpoints() {
		t.locality(i, l)
		for j, e := range l.GetLbEndpoints() {
			if of := t.review(i, j, l, e); of != nil {
				t.setAside(of)
			}
		}
	}
	return t.out.Excluded
}

// rank numbers the endpoints in the order in which they are sent: by form,
// locality and address.
func (c *Cluster) rank() {
	order := make([]int, len(c.Endpoints))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &c.Endpoints[i], &c.Endpoints[j]
		return cmp.Or(cmp.Compare(c.forms[a.form].name, c.forms[b.form].name), a.Key.Compare(b.Key))
	})
	for rank, i := range order {
		c.Endpoints[i].rank = rank
	}
}
