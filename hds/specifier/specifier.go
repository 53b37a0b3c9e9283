package specifier

import (
	"cmp"
	"slices"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/health"
)

// Item is one endpoint for one checker.
type Item struct {
	Cluster  *Cluster
	Endpoint int // index in Cluster.Endpoints
	ID       health.EndpointID
}

// Specifier is the message for one checker, and the expected order of its reports.
// Specifiers share parts: do not change them.
type Specifier struct {
	Message   *healthv3.HealthCheckSpecifier
	Order     []health.EndpointID // entry by entry as reports list them: clusters, localities, endpoints
	Addresses []string            // of each entry, as health.Endpoint writes it

	// Set by the caller.
	Serial uint64 // identifies it
	Retell bool   // report every vote again, even if unchanged
}

// Build makes the specifier for a checker that checks items and reports every interval
// (each second if it is not above zero). The order of items does not matter, and
// duplicates are sent once.
func Build(items []Item, interval time.Duration) *Specifier {
	sorted := slices.Clone(items)
	slices.SortFunc(sorted, compare)
	sorted = slices.CompactFunc(sorted, func(a, b Item) bool { return compare(a, b) == 0 })
	s := &Specifier{
		Message:   &healthv3.HealthCheckSpecifier{Interval: durationpb.New(reportInterval(interval))},
		Order:     make([]health.EndpointID, len(sorted)),
		Addresses: make([]string, len(sorted)),
	}
	endpoints := make([]*endpointv3.Endpoint, len(sorted))
	for i := range sorted {
		e := endpoint(&sorted[i])
		s.Order[i], s.Addresses[i], endpoints[i] = sorted[i].ID, e.Key.Address, e.message
	}
	for start, end := 0, 0; start < len(sorted); start = end {
		first := &sorted[start]
		for end = start + 1; end < len(sorted) && together(first, &sorted[end]); end++ {
		}
		s.add(first, endpoints[start:end:end])
	}
	return s
}

// Size is about how many bytes the message has when it is encoded.
func (s *Specifier) Size() int {
	const each, cluster = 32, 160 // beside the address
	size := cluster * len(s.Message.GetClusterHealthChecks())
	for _, address := range s.Addresses {
		size += each + len(address)
	}
	return size
}

// Same reports whether two specifiers say the same in the same parts, so that a checker that
// has one is not sent the other. It may be false where the parts only are alike.
func Same(a, b *Specifier) bool {
	return slices.Equal(a.Order, b.Order) && slices.EqualFunc(a.Message.GetClusterHealthChecks(), b.Message.GetClusterHealthChecks(), sameCluster)
}

func sameCluster(a, b *healthv3.ClusterHealthCheck) bool {
	return a.ClusterName == b.ClusterName && slices.Equal(a.HealthChecks, b.HealthChecks) &&
		slices.Equal(a.TransportSocketMatches, b.TransportSocketMatches) && a.UpstreamBindConfig == b.UpstreamBindConfig &&
		slices.EqualFunc(a.LocalityEndpoints, b.LocalityEndpoints, func(a, b *healthv3.LocalityEndpoints) bool { return slices.Equal(a.Endpoints, b.Endpoints) })
}

// add adds endpoints of one locality to the message.
func (s *Specifier) add(first *Item, endpoints []*endpointv3.Endpoint) {
	all := s.Message.ClusterHealthChecks
	if len(all) == 0 || all[len(all)-1].ClusterName != formOf(first).name {
		all = append(all, formOf(first).start())
		s.Message.ClusterHealthChecks = all
	}
	last := all[len(all)-1]
	last.LocalityEndpoints = append(last.LocalityEndpoints, &healthv3.LocalityEndpoints{Locality: first.Cluster.localities[endpoint(first).Locality], Endpoints: endpoints})
}

// together reports whether two items belong to one list of endpoints.
func together(a, b *Item) bool {
	return a.Cluster == b.Cluster && endpoint(a).form == endpoint(b).form && endpoint(a).Key.Locality == endpoint(b).Key.Locality
}

func reportInterval(interval time.Duration) time.Duration {
	if interval <= 0 {
		return time.Second // for Envoy, 0 means never
	}
	return interval
}

func endpoint(i *Item) *Endpoint { return &i.Cluster.Endpoints[i.Endpoint] }

func formOf(i *Item) *wireForm { return i.Cluster.forms[endpoint(i).form] }

// compare orders items by cluster, then as the cluster's endpoints are sent.
func compare(a, b Item) int {
	if a.Cluster == b.Cluster {
		return cmp.Compare(endpoint(&a).rank, endpoint(&b).rank)
	}
	return cmp.Or(cmp.Compare(a.Cluster.Name, b.Cluster.Name), cmp.Compare(endpoint(&a).rank, endpoint(&b).rank))
}
