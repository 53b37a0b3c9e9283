package specifier

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/health"
)

// Options describe the checkers' machines. A specifier names nothing else on them.
type Options struct {
	Files      map[string]bool // paths that every checker can read
	SDSSecrets map[string]bool // names of secrets that every checker can get

	// SDSConfig, if not nil, is the checkers' source of secrets whose sds_config in the source
	// only data planes can use: of all if SDSSecrets is empty, else of those in it. Its versions
	// are V3. It is not reviewed.
	SDSConfig *corev3.ConfigSource

	// Targets are the addresses that checkers may probe.
	Targets Targets

	// MinInterval is the shortest interval of checks. Shorter intervals become this long; 0: any.
	MinInterval time.Duration

	// NoTrafficIntervals keeps the no_traffic intervals of health checks. Otherwise their
	// other intervals count.
	NoTrafficIntervals bool

	// Verbose makes reasons name every problem, however many there are.
	Verbose bool
}

// Equal reports whether both are equal.
func (o Options) Equal(other Options) bool {
	same := proto.Equal(o.SDSConfig, other.SDSConfig)
	o.SDSConfig, other.SDSConfig = nil, nil
	return same && reflect.DeepEqual(o, other)
}

// Cluster is a source's cluster, translated for checkers. It is immutable.
type Cluster struct {
	Name      string
	Needs     []health.Ability // abilities that a checker needs, sorted
	Endpoints []Endpoint       // the checked endpoints, in the source's order
	Excluded  []Exclusion      // parts that are not checked, with the reasons
	Timing    Timing
	Raised    time.Duration // the shortest interval that was below Options.MinInterval; 0: none
	forms     []*wireForm   // its clusters on the wire

	places     []health.Locality  // of the source's localities
	localities []*corev3.Locality // of the same: the message that specifiers share
}

// Key returns the key of a checked endpoint.
func (c *Cluster) Key(index int) health.Endpoint {
	return health.Endpoint{Cluster: c.Name, Locality: *c.LocalityOf(index), Address: c.Endpoints[index].Address}
}

// LocalityOf returns the locality of a checked endpoint. It must not be changed.
func (c *Cluster) LocalityOf(index int) *health.Locality {
	return &c.places[c.Endpoints[index].Locality]
}

// Endpoint is a checked endpoint, packed because there may be millions.
type Endpoint struct {
	Address         string
	Locality, Index int32 // its place in the ClusterLoadAssignment
	form, rank      int32 // index in the cluster's forms; order in which it is sent

	// special is the message to send, if it is more than an IP address and a port.
	special *endpointv3.Endpoint
}

// Exclusion is an endpoint that is not checked, with the reason. An empty Address means the
// whole cluster, whose Endpoints are then empty.
type Exclusion struct {
	Address, Reason string
	Locality, Index int // its place in the ClusterLoadAssignment
}

// Timing is the timing of the checks, for judging reports. With several health checks
// it is that of the slowest.
type Timing struct {
	Interval, Timeout, InitialJitter     time.Duration
	UnhealthyThreshold, HealthyThreshold uint32
}

// Translate translates a source's cluster for checkers. The name is hdsd's own for it: checkers
// report by it, and endpoints are sent the one in the cluster, if that has one. Faults in its arguments become
// Excluded. An endpoint with disable_active_health_check is in neither list. One that
// the assignment has twice in a locality is there once.
func Translate(name string, config *clusterv3.Cluster, a *endpointv3.ClusterLoadAssignment, checks []*corev3.HealthCheck, o Options) *Cluster {
	t := &translation{
		result: &Cluster{Name: name}, options: o, sockets: reviewSockets(config, o),
		forms: map[choice]int{}, places: map[health.Locality]int{},
	}
	if wrong := t.cluster(config, a, checks); wrong != "" {
		return &Cluster{Name: name, Excluded: []Exclusion{{Reason: wrong}}}
	}
	size := 0
	for _, l := range a.GetEndpoints() {
		size += len(l.GetLbEndpoints())
	}
	t.result.Endpoints, t.seen = make([]Endpoint, 0, size), make(map[seen]bool, size)
	for i, l := range a.GetEndpoints() {
		t.locality(i, l)
		for j, e := range l.GetLbEndpoints() {
			t.endpoint(i, j, l, e)
		}
	}
	t.result.Needs = slices.Sorted(maps.Keys(t.needs))
	t.result.rank()
	return t.result
}

// ListedElsewhere reports whether a locality's endpoints are outside of its
// lb_endpoints, which then do not count.
func ListedElsewhere(l *endpointv3.LocalityLbEndpoints) bool { return l.GetLbConfig() != nil }

// ReviewCluster returns the faults of a cluster without those of its endpoints, each as
// "field: what is wrong" or without a field.
func ReviewCluster(name string, config *clusterv3.Cluster, a *endpointv3.ClusterLoadAssignment, checks []*corev3.HealthCheck, o Options) []string {
	t := &translation{result: &Cluster{Name: name}, options: o, sockets: reviewSockets(config, o)}
	return t.look(config, a, checks).problems
}

// ReviewEndpoints returns the faults of endpoints alone, even if the cluster has
// faults.
func ReviewEndpoints(name string, a *endpointv3.ClusterLoadAssignment, o Options) []Exclusion {
	t := &translation{result: &Cluster{Name: name}, options: o, places: map[health.Locality]int{}, seen: map[seen]bool{}}
	for i, l := range a.GetEndpoints() {
		t.locality(i, l)
		for j, e := range l.GetLbEndpoints() {
			if c := t.review(i, j, l, e); c != nil {
				t.exclude(c)
			}
		}
	}
	return t.result.Excluded
}

// rank numbers the endpoints in the order in which they are sent: by form, locality and
// address.
func (c *Cluster) rank() {
	order := make([]int, len(c.Endpoints))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &c.Endpoints[i], &c.Endpoints[j]
		if a.form == b.form && a.Locality == b.Locality {
			return cmp.Compare(a.Address, b.Address)
		}
		return cmp.Or(cmp.Compare(c.forms[a.form].name, c.forms[b.form].name), c.LocalityOf(i).Compare(*c.LocalityOf(j)), cmp.Compare(a.Address, b.Address))
	})
	for rank, i := range order {
		c.Endpoints[i].rank = int32(rank)
	}
}
