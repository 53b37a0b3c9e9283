package validate

import (
	"fmt"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/catalog"
	"hdsd/envoy"
	"hdsd/source"
)

// gRPC's own xDS clients, in the releases that the rules were tested with.
const (
	GRPCGo   = "grpc-go 1.85.0"
	GRPCCore = "C-core 1.85.3"
	GRPCJava = "grpc-java 1.85.1"
	GRPCNode = "grpc-js-xds 1.14.1"
)

// GRPCRule is a field that gRPC's clients refuse, or read differently than Envoy.
type GRPCRule struct {
	Field   string   // of the Cluster or the ClusterLoadAssignment, and its value
	Effect  string   // behaviour of these clients
	Clients []string // of the four

	// One of them is set. They report whether the rule applies to published resources.
	cluster    func(*clusterv3.Cluster) bool
	assignment func(*endpointv3.ClusterLoadAssignment) bool
}

// Concerns reports whether the rule applies to a cluster with these endpoints, as hdsd publishes
// them. Both may be nil.
func (r *GRPCRule) Concerns(c *clusterv3.Cluster, a *endpointv3.ClusterLoadAssignment) bool {
	if r.cluster != nil {
		return c != nil && r.cluster(c)
	}
	return r.assignment(a)
}

// Behaviours of clients.
const (
	refuseCluster    = "refuse the cluster: all calls fail"
	refuseAssignment = "refuse the whole assignment: they keep the one before, or all calls fail"
)

// GRPCRules returns all rules.
func GRPCRules() []GRPCRule {
	clients := []string{GRPCGo, GRPCCore, GRPCJava, GRPCNode}
	allButJava := []string{GRPCGo, GRPCCore, GRPCNode}
	return []GRPCRule{
		{Field: "`type: STATIC`", Effect: refuseCluster, Clients: clients, cluster: typeIs(clusterv3.Cluster_STATIC)},
		{Field: "`type: STRICT_DNS`", Effect: refuseCluster, Clients: clients, cluster: typeIs(clusterv3.Cluster_STRICT_DNS)},
		{Field: "`type: LOGICAL_DNS` with several endpoints", Effect: refuseCluster, Clients: clients, cluster: severalNames},
		{Field: "`lb_policy: RANDOM`", Effect: refuseCluster, Clients: clients, cluster: policyIs(clusterv3.Cluster_RANDOM)},
		{Field: "`lb_policy: MAGLEV`", Effect: refuseCluster, Clients: clients, cluster: policyIs(clusterv3.Cluster_MAGLEV)},
		{
			Field: "`lb_policy: LEAST_REQUEST`", Effect: refuseCluster, Clients: []string{GRPCCore, GRPCNode},
			cluster: policyIs(clusterv3.Cluster_LEAST_REQUEST),
		},
		{Field: "`transport_socket` of raw_buffer", Effect: refuseCluster, Clients: clients, cluster: isRawBuffer},
		{
			Field: "`transport_socket_matches`", Effect: refuseCluster, Clients: []string{GRPCGo, GRPCJava},
			cluster: func(c *clusterv3.Cluster) bool { return len(c.GetTransportSocketMatches()) > 0 },
		},
		{Field: "a `priority` without the one before it", Effect: refuseAssignment, Clients: clients, assignment: hasGap},
		{Field: "a `locality` twice in a priority", Effect: refuseAssignment, Clients: clients, assignment: repeatsLocality},
		{Field: "an address twice", Effect: refuseAssignment, Clients: allButJava, assignment: repeatsAddress},
		{
			Field: "a `pipe` among the addresses", Effect: refuseAssignment, Clients: []string{GRPCCore, GRPCJava, GRPCNode},
			assignment: hasPipe,
		},
		{
			Field: "a `locality` in two priorities", Effect: "loses its endpoints of the first of them", Clients: []string{GRPCJava},
			assignment: spansPriorities,
		},
		{
			Field: "`health_status: DEGRADED`", Effect: "make no calls to it, even if no other is left", Clients: clients,
			assignment: hasDegraded,
		},
	}
}

// addGRPC records how gRPC's clients read a cluster.
func (e *examiner) addGRPC(k *catalog.Cluster) {
	for _, r := range GRPCRules() {
		if r.Concerns(k.Published(false), k.Assignment.Message()) {
			e.found.GRPC = append(e.found.GRPC, source.Problem{
				File: k.Source.File, Line: k.Source.Line, Resource: k.Source.Name, Warning: true,
				Message: fmt.Sprintf("%s: %s %s", r.Field, strings.Join(r.Clients, ", "), r.Effect),
			})
		}
	}
}

func typeIs(kind clusterv3.Cluster_DiscoveryType) func(*clusterv3.Cluster) bool {
	return func(c *clusterv3.Cluster) bool { return c.GetClusterType() == nil && c.GetType() == kind }
}

func policyIs(policy clusterv3.Cluster_LbPolicy) func(*clusterv3.Cluster) bool {
	return func(c *clusterv3.Cluster) bool { return c.GetLoadBalancingPolicy() == nil && c.GetLbPolicy() == policy }
}

func severalNames(c *clusterv3.Cluster) bool {
	endpoints := 0
	for range eachEndpoint(c.GetLoadAssignment()) {
		endpoints++
	}
	return typeIs(clusterv3.Cluster_LOGICAL_DNS)(c) && endpoints > 1
}

func isRawBuffer(c *clusterv3.Cluster) bool {
	return strings.HasSuffix(c.GetTransportSocket().GetTypedConfig().GetTypeUrl(), "transport_sockets.raw_buffer.v3.RawBuffer")
}

func hasGap(a *endpointv3.ClusterLoadAssignment) bool {
	priorities := map[uint32]bool{}
	for _, group := range a.GetEndpoints() {
		priorities[group.GetPriority()] = true
	}
	for priority := range priorities {
		if priority > 0 && !priorities[priority-1] {
			return true
		}
	}
	return false
}

// localities counts the occurrences of each locality in an assignment, for each of its
// priorities.
func localities(a *endpointv3.ClusterLoadAssignment) map[string]map[uint32]int {
	counts := map[string]map[uint32]int{}
	for _, group := range a.GetEndpoints() {
		l := group.GetLocality()
		key := strings.Join([]string{l.GetRegion(), l.GetZone(), l.GetSubZone()}, "\x00")
		if counts[key] == nil {
			counts[key] = map[uint32]int{}
		}
		counts[key][group.GetPriority()]++
	}
	return counts
}

func repeatsLocality(a *endpointv3.ClusterLoadAssignment) bool {
	for _, priorities := range localities(a) {
		for _, times := range priorities {
			if times > 1 {
				return true
			}
		}
	}
	return false
}

func spansPriorities(a *endpointv3.ClusterLoadAssignment) bool {
	for _, priorities := range localities(a) {
		if len(priorities) > 1 {
			return true
		}
	}
	return false
}

func repeatsAddress(a *endpointv3.ClusterLoadAssignment) bool {
	seen := map[string]bool{}
	for e := range eachEndpoint(a) {
		address := envoy.AddressOf(e, 0, 0)
		if seen[address] {
			return true
		}
		seen[address] = true
	}
	return false
}

func hasPipe(a *endpointv3.ClusterLoadAssignment) bool {
	for e := range eachEndpoint(a) {
		if e.GetEndpoint().GetAddress().GetPipe() != nil {
			return true
		}
	}
	return false
}

func hasDegraded(a *endpointv3.ClusterLoadAssignment) bool {
	for e := range eachEndpoint(a) {
		if e.GetHealthStatus() == corev3.HealthStatus_DEGRADED {
			return true
		}
	}
	return false
}

func eachEndpoint(a *endpointv3.ClusterLoadAssignment) func(yield func(*endpointv3.LbEndpoint) bool) {
	return func(yield func(*endpointv3.LbEndpoint) bool) {
		for _, group := range a.GetEndpoints() {
			if slices.ContainsFunc(group.GetLbEndpoints(), func(e *endpointv3.LbEndpoint) bool { return !yield(e) }) {
				return
			}
		}
	}
}
