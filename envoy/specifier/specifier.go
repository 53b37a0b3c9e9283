package specifier

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"

	"hdsd/health"
)

// Item is one endpoint for one checker.
type Item struct {
	Cluster  *Cluster
	Endpoint int // index in Cluster.Endpoints
	ID       health.EndpointID
}

// Specifier is the message to one checker, and the expected order of its reports. It shares
// parts with others, and keeps no message of an endpoint that is only an address, because there
// may be millions.
type Specifier struct {
	Interval  time.Duration // between two reports
	Clusters  []Part
	Order     []health.EndpointID // entry by entry as reports list them: clusters, localities, endpoints
	Addresses []string            // of each entry, as health.Endpoint writes it

	// Special has the endpoints that are more than an IP address and a port, by entry.
	Special map[int]*endpointv3.Endpoint

	// Set by the caller.
	Serial uint64 // identifies it
	Retell bool   // report every vote again, even if unchanged
}

// Part is one cluster of a specifier.
type Part struct {
	Head       *healthv3.ClusterHealthCheck // without localities; others share its parts
	Localities []Group
}

// Group is one locality of a cluster, with a number of entries, in their order.
type Group struct {
	Locality *corev3.Locality
	Entries  int
}

// Build makes the specifier for a checker that checks items and reports every interval
// (each second if it is not above zero). The order of items does not matter, and
// duplicates are sent once.
func Build(items []Item, interval time.Duration) *Specifier {
	sorted := slices.Clone(items)
	slices.SortFunc(sorted, compare)
	sorted = slices.CompactFunc(sorted, func(a, b Item) bool { return compare(a, b) == 0 })
	s := &Specifier{
		Interval: reportInterval(interval), Order: make([]health.EndpointID, len(sorted)), Addresses: make([]string, len(sorted)),
	}
	for i := range sorted {
		e := endpoint(&sorted[i])
		s.Order[i], s.Addresses[i] = sorted[i].ID, e.Address
		if e.special != nil {
			s.add(i, e.special)
		}
	}
	for start, end := 0, 0; start < len(sorted); start = end {
		first := &sorted[start]
		for end = start + 1; end < len(sorted) && together(first, &sorted[end]); end++ {
		}
		s.group(first, end-start)
	}
	return s
}

func (s *Specifier) add(entry int, special *endpointv3.Endpoint) {
	if s.Special == nil {
		s.Special = map[int]*endpointv3.Endpoint{}
	}
	s.Special[entry] = special
}

// group adds endpoints of one locality.
func (s *Specifier) group(first *Item, entries int) {
	form := formOf(first)
	if n := len(s.Clusters); n == 0 || s.Clusters[n-1].Head.GetClusterName() != form.name {
		s.Clusters = append(s.Clusters, Part{Head: form.start()})
	}
	last := &s.Clusters[len(s.Clusters)-1]
	last.Localities = append(last.Localities, Group{first.Cluster.localities[endpoint(first).Locality], entries})
}

// Append appends a part, with its entries: those of another specifier, beginning with entry.
func (s *Specifier) Append(p Part, source *Specifier, entry int) {
	s.Clusters = append(s.Clusters, p)
	for _, g := range p.Localities {
		for range g.Entries {
			if special := source.Special[entry]; special != nil {
				s.add(len(s.Order), special)
			}
			s.Order, s.Addresses = append(s.Order, source.Order[entry]), append(s.Addresses, source.Addresses[entry])
			entry++
		}
	}
}

// Same reports whether two specifiers are equal with the same parts, so that a checker that has
// one is not sent the other. It may be false for parts that are equal and not shared.
func Same(a, b *Specifier) bool {
	return a.Interval == b.Interval && slices.Equal(a.Order, b.Order) && slices.EqualFunc(a.Clusters, b.Clusters, samePart) &&
		slices.Equal(a.Addresses, b.Addresses) && maps.Equal(a.Special, b.Special)
}

func samePart(a, b Part) bool {
	return a.Head.GetClusterName() == b.Head.GetClusterName() && slices.Equal(a.Head.GetHealthChecks(), b.Head.GetHealthChecks()) &&
		slices.Equal(a.Head.GetTransportSocketMatches(), b.Head.GetTransportSocketMatches()) && slices.Equal(a.Localities, b.Localities)
}

// together reports whether two items belong to one list of endpoints.
func together(a, b *Item) bool {
	return a.Cluster == b.Cluster && endpoint(a).form == endpoint(b).form && *a.Cluster.LocalityOf(a.Endpoint) == *b.Cluster.LocalityOf(b.Endpoint)
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
