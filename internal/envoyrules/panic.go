package envoyrules

import (
	"fmt"
	"math/bits"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	defaultPanicThreshold   = 50  // percent
	defaultOverprovisioning = 140 // percent
	mostExplained           = 3   // priorities
)

// PanicRules say when an Envoy disregards the health of a cluster's endpoints, and sends
// traffic to all: when too few are available, it is in panic.
type PanicRules struct {
	Threshold uint32 // percent of healthy endpoints; 0: never
	Assumed   bool   // the threshold is Envoy's default, since there is no Cluster that could set it
	Fails     bool   // in panic it fails all requests instead (fail_traffic_on_panic)
	Weighted  bool   // endpoints count by their weights for the spill to other priorities

	overprovisioning uint32 // percent
}

// PanicRulesOf returns what a Cluster, nil where there is none, and its assignment say.
func PanicRulesOf(c *clusterv3.Cluster, a *endpointv3.ClusterLoadAssignment) PanicRules {
	r := PanicRules{
		Threshold: defaultPanicThreshold, Assumed: c == nil, overprovisioning: defaultOverprovisioning,
		Weighted: a.GetPolicy().GetWeightedPriorityHealth(), Fails: failsInPanic(c),
	}
	if factor := a.GetPolicy().GetOverprovisioningFactor(); factor != nil {
		r.overprovisioning = factor.GetValue()
	}
	if threshold := c.GetCommonLbConfig().GetHealthyPanicThreshold(); threshold != nil {
		r.Threshold = uint32(min(max(threshold.GetValue(), 0), 100)) // an Envoy cuts decimals off
	}
	if isClusterProvided(c) {
		r.Threshold = 0 // such a load balancer knows no panic
	}
	return r
}

// isClusterProvided reports whether the load balancer of a cluster is that of its type.
func isClusterProvided(c *clusterv3.Cluster) bool {
	return c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED ||
		strings.HasPrefix(firstPolicy(c).GetTypeUrl(), typePrefix+"envoy.extensions.load_balancing_policies.cluster_provided.")
}

// failsInPanic reports whether a Cluster sets fail_traffic_on_panic, and its load balancer is one
// that looks at that.
func failsInPanic(c *clusterv3.Cluster) bool {
	if c.GetLoadBalancingPolicy() == nil {
		switch c.GetLbPolicy() {
		case clusterv3.Cluster_ROUND_ROBIN, clusterv3.Cluster_LEAST_REQUEST, clusterv3.Cluster_RANDOM:
			return c.GetCommonLbConfig().GetZoneAwareLbConfig().GetFailTrafficOnPanic()
		}
		return false
	}
	policy, err := firstPolicy(c).UnmarshalNew()
	if err != nil {
		return false
	}
	return field(policy, "locality_lb_config", "zone_aware_lb_config", "fail_traffic_on_panic")
}

// field returns a field of a message by its path, false where a part of it is not set.
func field(m proto.Message, path ...protoreflect.Name) bool {
	inner := m.ProtoReflect()
	for i, name := range path {
		f := inner.Descriptor().Fields().ByName(name)
		switch {
		case f == nil || !inner.Has(f):
			return false
		case i == len(path)-1:
			return inner.Get(f).Bool()
		}
		inner = inner.Get(f).Message()
	}
	return false
}

// Hosts counts the endpoints of one priority as an Envoy does.
type Hosts struct {
	All, Healthy, Degraded int
	Excluded               int // those that drain: they do not count, and get traffic in panic

	// The weights of all that are not excluded, of the healthy and of the degraded ones; only
	// needed with Weighted.
	Weight, HealthyWeight, DegradedWeight uint64
}

// Add adds n endpoints of a weight that are published with a health, the number of a HealthStatus;
// n may be negative.
func (h *Hosts) Add(status int32, weight uint32, n int) {
	h.All += n
	sum := uint64(weight) * uint64(n) // wraps around where n is negative, as it is to
	switch corev3.HealthStatus(status) {
	case corev3.HealthStatus_DRAINING:
		h.Excluded += n
		return
	case corev3.HealthStatus_DEGRADED:
		h.Degraded += n
		h.DegradedWeight += sum
	case corev3.HealthStatus_UNKNOWN, corev3.HealthStatus_HEALTHY:
		h.Healthy += n
		h.HealthyWeight += sum
	}
	h.Weight += sum
}

// percent returns how much of the endpoints is healthy or degraded.
func (h *Hosts) percent() float64 {
	count := h.All - h.Excluded
	if count <= 0 {
		return 0
	}
	return 100*float64(h.Healthy)/float64(count) + 100*float64(h.Degraded)/float64(count)
}

// availability returns the healthy and the degraded percentage that counts for the spill to
// other priorities, each at most 100.
func (r *PanicRules) availability(h *Hosts) uint64 {
	all, healthy, degraded := uint64(h.All-h.Excluded), uint64(h.Healthy), uint64(h.Degraded)
	if r.Weighted {
		all, healthy, degraded = h.Weight, h.HealthyWeight, h.DegradedWeight
	}
	if all == 0 {
		return 0
	}
	percent := func(part uint64) uint64 {
		high, low := bits.Mul64(uint64(r.overprovisioning), part)
		quotient, _ := bits.Div64(high, low, all) // high is below part, which is at most all
		return min(100, quotient)
	}
	return percent(healthy) + percent(degraded)
}

// Panics returns the priorities, in order, whose health an Envoy disregards and that get traffic.
// It takes the endpoints of all priorities, by priority.
func (r *PanicRules) Panics(priorities []Hosts) (all []int) {
	available := make([]uint64, len(priorities))
	sum, total := uint64(0), true
	for i := range priorities {
		available[i] = r.availability(&priorities[i])
		sum += available[i]
		total = total && priorities[i].percent() < float64(r.Threshold)
	}
	if sum >= 100 || r.Threshold == 0 {
		return nil
	}
	for i := range priorities {
		h := &priorities[i]
		// If all are in panic, each gets traffic by its size, else by what is available.
		if h.percent() < float64(r.Threshold) && (total && h.All > 0 || available[i] > 0) {
			all = append(all, i)
		}
	}
	return all
}

// Explain says that an Envoy is in panic, or would be, and why; empty if it is not.
func (r *PanicRules) Explain(priorities []Hosts, would bool) string {
	panics := r.Panics(priorities)
	if len(panics) == 0 {
		return ""
	}
	does := "sends traffic to all"
	switch {
	case r.Fails && would:
		does = "would fail all requests to"
	case r.Fails:
		does = "fails all requests to"
	case would:
		does = "would send traffic to all"
	}
	threshold := fmt.Sprintf("its threshold of %d %%", r.Threshold)
	if r.Assumed {
		threshold = fmt.Sprintf("Envoy's default threshold of %d %%, since no source has the cluster itself", r.Threshold)
	}
	var text strings.Builder
	for i, priority := range panics {
		h := &priorities[priority]
		where := ""
		if len(priorities) > 1 {
			where = fmt.Sprintf(" of priority %d", priority)
		}
		switch i {
		case 0:
			fmt.Fprintf(&text, "Envoy %s %s%s: %s is below %s", does, endpointCount(h.All), where, h.share(), threshold)
		case mostExplained:
			fmt.Fprintf(&text, "; and to those of %d more priorities", len(panics)-i)
			return text.String()
		default:
			fmt.Fprintf(&text, "; to all %s%s: %s", endpointCount(h.All), where, h.share())
		}
	}
	return text.String()
}

// share says how much of the endpoints is healthy.
func (h *Hosts) share() string {
	share := fmt.Sprintf("%d %% healthy", int(h.percent()))
	if h.Degraded > 0 {
		share += " or degraded"
	}
	switch {
	case h.Excluded > 0 && h.Excluded == h.All:
		share += " (all drain)"
	case h.Excluded > 0:
		share += fmt.Sprintf(" (without %d that drain)", h.Excluded)
	}
	return share
}

func endpointCount(n int) string {
	if n == 1 {
		return "1 endpoint"
	}
	return fmt.Sprintf("%d endpoints", n)
}
