package rules

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

// PanicRules decide when an Envoy is in panic for a cluster: too few endpoints are available, so
// it disregards their health and sends traffic to all.
type PanicRules struct {
	Threshold uint32 // percent of healthy endpoints; 0: never
	Assumed   bool   // the threshold is Envoy's default, since there is no Cluster that could set it
	Fails     bool   // in panic it fails all requests instead (fail_traffic_on_panic)
	Weighted  bool   // the spill to other priorities counts weights, not endpoints

	overprovisioning uint32 // percent
}

// PanicRulesOf returns the rules of a Cluster and its assignment. Either may be nil.
func PanicRulesOf(c *clusterv3.Cluster, a *endpointv3.ClusterLoadAssignment) PanicRules {
	r := PanicRules{
		Threshold: defaultPanicThreshold, Assumed: c == nil, overprovisioning: defaultOverprovisioning,
		Weighted: a.GetPolicy().GetWeightedPriorityHealth(), Fails: failsInPanic(c),
	}
	if factor := a.GetPolicy().GetOverprovisioningFactor(); factor != nil {
		r.overprovisioning = factor.GetValue()
	}
	if threshold := c.GetCommonLbConfig().GetHealthyPanicThreshold(); threshold != nil {
		r.Threshold = uint32(min(max(threshold.GetValue(), 0), 100)) // Envoy cuts decimals off
	}
	if isClusterProvided(c) {
		r.Threshold = 0 // such a load balancer has no panic
	}
	return r
}

// isClusterProvided reports whether a cluster uses the load balancer of its own type.
func isClusterProvided(c *clusterv3.Cluster) bool {
	return c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED ||
		strings.HasPrefix(firstPolicy(c).GetTypeUrl(), typePrefix+"envoy.extensions.load_balancing_policies.cluster_provided.")
}

// failsInPanic reports whether a Cluster sets fail_traffic_on_panic, and its load balancer reads that.
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
	return boolField(policy, "locality_lb_config", "zone_aware_lb_config", "fail_traffic_on_panic")
}

// boolField returns a field of a message by its path; false if a part of the path is not set.
func boolField(m proto.Message, path ...protoreflect.Name) bool {
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
	Excluded               int // draining ones: they do not count, but get traffic in panic

	// The weights of the endpoints that are not excluded, the healthy and the degraded ones. Only
	// Weighted rules read them.
	Weight, HealthyWeight, DegradedWeight uint64
}

// Add adds n endpoints of a weight and a status, the number of a HealthStatus. A negative n removes
// them.
func (h *Hosts) Add(status int32, weight uint32, n int) {
	h.All += n
	sum := uint64(weight) * uint64(n) // a negative n wraps around, and subtracts
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

// percent returns the percentage of endpoints that are healthy or degraded.
func (h *Hosts) percent() float64 {
	count := h.All - h.Excluded
	if count <= 0 {
		return 0
	}
	return 100*float64(h.Healthy)/float64(count) + 100*float64(h.Degraded)/float64(count)
}

// availability returns the sum of the healthy and the degraded percentage that decide the spill to
// other priorities, each at most 100.
func (r *PanicRules) availability(h *Hosts) uint64 {
	total, healthy, degraded := uint64(h.All-h.Excluded), uint64(h.Healthy), uint64(h.Degraded)
	if r.Weighted {
		total, healthy, degraded = h.Weight, h.HealthyWeight, h.DegradedWeight
	}
	if total == 0 {
		return 0
	}
	percent := func(part uint64) uint64 {
		high, low := bits.Mul64(uint64(r.overprovisioning), part)
		quotient, _ := bits.Div64(high, low, total) // high is below part, which is at most all
		return min(100, quotient)
	}
	return percent(healthy) + percent(degraded)
}

// Panics returns the priorities in panic that get traffic, in order. It takes the hosts of all
// priorities, by priority.
func (r *PanicRules) Panics(priorities []Hosts) (panicking []int) {
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
		// If all are in panic, each gets traffic by its size, else by its availability.
		if h.percent() < float64(r.Threshold) && (total && h.All > 0 || available[i] > 0) {
			panicking = append(panicking, i)
		}
	}
	return panicking
}

// Explain returns the reason why an Envoy is in panic; empty if it is not. It is worded as a
// possibility if conditional.
func (r *PanicRules) Explain(priorities []Hosts, conditional bool) string {
	panics := r.Panics(priorities)
	if len(panics) == 0 {
		return ""
	}
	action, hosts := "sends traffic to", allEndpoints
	switch {
	case r.Fails && conditional:
		action, hosts = "would fail all requests to", endpointCount
	case r.Fails:
		action, hosts = "fails all requests to", endpointCount
	case conditional:
		action = "would send traffic to"
	}
	threshold := fmt.Sprintf("its threshold of %d %%", r.Threshold)
	if r.Assumed {
		threshold = fmt.Sprintf("Envoy's default threshold of %d %%, since no source has the cluster itself", r.Threshold)
	}
	var text strings.Builder
	for i, priority := range panics {
		h := &priorities[priority]
		location := ""
		if len(priorities) > 1 {
			location = fmt.Sprintf(" of priority %d", priority)
		}
		switch i {
		case 0:
			fmt.Fprintf(&text, "Envoy %s %s%s: %s is below %s", action, hosts(h.All), location, h.share(), threshold)
		case mostExplained:
			fmt.Fprintf(&text, "; and to those of %d more priorities", len(panics)-i)
			return text.String()
		default:
			fmt.Fprintf(&text, "; to %s%s: %s", allEndpoints(h.All), location, h.share())
		}
	}
	return text.String()
}

// allEndpoints writes that a number of endpoints are all.
func allEndpoints(n int) string {
	if n == 1 {
		return "the only endpoint"
	}
	return "all " + endpointCount(n)
}

// share writes the percentage of healthy endpoints.
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
