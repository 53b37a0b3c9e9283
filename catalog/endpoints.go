package catalog

import (
	"cmp"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/envoy"
	"hdsd/envoy/rules"
	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/publish"
)

const (
	noHealthChecks = "not checked: the cluster has no health checks; give it some, or default_health_checks"
	checkDisabled  = "not checked: its active health check is disabled"
)

// lister lists the endpoints of a cluster's assignment.
type lister struct {
	*Cluster
	nextIndex int                     // index in Checked.Endpoints of the next one in the order of the assignment
	checked   map[health.Endpoint]int // by key: index in Checked.Endpoints; made when needed
	reasons   map[string]string       // by address: reason of its exclusion; "" for all
	reason    string                  // reason why anything else is not checked
	name      string                  // the latest hostname, which the next endpoint often shares
}

// listEndpoints fills Endpoints and related fields. An address that occurs twice in a locality
// is checked once.
func (c *Cluster) listEndpoints(given *endpointv3.ClusterLoadAssignment) {
	l := lister{Cluster: c, reasons: map[string]string{}}
	l.reason = cmp.Or(c.Source.Rejected, noHealthChecks)
	if c.Checked != nil {
		for _, q := range c.Checked.Excluded {
			l.reasons[q.Address] = q.Reason
		}
		l.reason = cmp.Or(l.reasons[""], checkDisabled)
	}
	size := 0
	for _, group := range given.GetEndpoints() {
		size += len(group.GetLbEndpoints())
	}
	c.Endpoints = make([]Endpoint, 0, size)
	numbers := prioritiesOf(given)
	for i, group := range given.GetEndpoints() {
		priority, _ := slices.BinarySearch(numbers, group.GetPriority()) // no priority is skipped
		indices := make([]int32, 0, len(group.GetLbEndpoints()))
		for j, e := range group.GetLbEndpoints() {
			if c.united[place{i, j}] {
				continue
			}
			sent := c.Assignment != nil && (c.Assignment == c.Source.Assignment || acceptable(c.Source.Config, e))
			position := None
			if sent {
				position = len(indices)
			}
			first := len(c.Endpoints)
			index := l.add(i, j, group.GetLocality(), e, position)
			l.weigh(first, e, uint8(priority))
			if sent {
				indices = append(indices, int32(index))
			}
		}
		c.CheckedIndex = append(c.CheckedIndex, indices)
	}
	slices.SortFunc(c.Endpoints, func(a, b Endpoint) int { return a.compare(&b) })
	c.Endpoints = slices.CompactFunc(c.Endpoints, func(a, b Endpoint) bool { return a.compare(&b) == 0 })
}

// add lists one endpoint, given its position in its locality of Assignment, or None. It returns
// the endpoint's index in Checked.Endpoints, or None.
func (l *lister) add(i, j int, locality *corev3.Locality, e *endpointv3.LbEndpoint, position int) int {
	refusal := ""
	if position == None && l.Source.Rejected == "" {
		refusal = l.refuse(i, j, e)
	}
	added := Endpoint{cluster: l.Cluster, SourceHealth: publish.SourceStatus(e), InAssignment: position != None}
	if index, ok := l.checkedAt(i, j); ok {
		added.index = int32(index)
		if name := l.hostname(e); name != "" {
			if l.hostnames == nil {
				l.hostnames = make([]string, len(l.Checked.Endpoints))
			}
			l.hostnames[index] = name
		}
		l.Endpoints = append(l.Endpoints, added)
		return index
	}
	lacks := unchecked{key: health.Endpoint{Cluster: l.Source.Name, Locality: envoy.Locality(locality), Address: envoy.AddressOf(e, i, j)}, hostname: l.hostname(e)}
	twin, hasTwin := l.twin(&lacks.key)
	if hasTwin && !e.GetEndpoint().GetHealthCheckConfig().GetDisableActiveHealthCheck() {
		return twin // the twin is listed
	}
	if hasTwin {
		lacks.hash = l.Hashes[twin]
	} else {
		lacks.hash = lacks.key.Hash()
		lacks.reason = cmp.Or(refusal, l.reasons[lacks.key.Address], l.reason)
		l.unchecked = append(l.unchecked, lacks)
		added.index = int32(-len(l.unchecked))
		l.Endpoints = append(l.Endpoints, added)
	}
	l.exclude(&lacks, i, position, hasTwin)
	return None
}

// hostname returns the hostname of an endpoint. Equal hostnames in a row share memory.
func (l *lister) hostname(e *endpointv3.LbEndpoint) string {
	if name := e.GetEndpoint().GetHostname(); name != l.name {
		l.name = name
	}
	return l.name
}

// weigh sets the priority and the weight of the endpoints that add has added, from an index on.
func (l *lister) weigh(first int, e *endpointv3.LbEndpoint, priority uint8) {
	for i := range l.Endpoints[first:] {
		added := &l.Endpoints[first+i]
		added.Priority = priority
		if weight := e.GetLoadBalancingWeight().GetValue(); weight > 1 && l.Panic.Weighted {
			if l.weights == nil {
				l.weights = map[health.Hash]uint32{}
			}
			l.weights[added.Hash()] = weight
		}
	}
}

// checkedAt returns the index in Checked.Endpoints of the endpoint at a place of the
// assignment, if it is there. Places come in order.
func (l *lister) checkedAt(locality, index int) (checked int, ok bool) {
	if l.Checked == nil || l.nextIndex == len(l.Checked.Endpoints) {
		return 0, false
	}
	if e := &l.Checked.Endpoints[l.nextIndex]; int(e.Locality) != locality || int(e.Index) != index {
		return 0, false
	}
	l.nextIndex++
	return l.nextIndex - 1, true
}

// twin returns the index in Checked.Endpoints of an endpoint with the same key, if there is
// one.
func (l *lister) twin(key *health.Endpoint) (index int, ok bool) {
	if l.Checked == nil {
		return 0, false
	}
	if l.checked == nil {
		l.checked = make(map[health.Endpoint]int, len(l.Checked.Endpoints))
		for i := range l.Checked.Endpoints {
			l.checked[l.Checked.Key(i)] = i
		}
	}
	index, ok = l.checked[*key]
	return index, ok
}

// exclude notes an endpoint that is not checked although health checks apply.
func (l *lister) exclude(e *unchecked, locality, position int, hasTwin bool) {
	excluded := Excluded{Locality: locality, Index: position, Key: e.key, Hash: e.hash}
	switch {
	case l.Source.Rejected+l.reasons[""]+l.reasons[e.key.Address] != "":
		l.Excluded = append(l.Excluded, excluded)
	case l.Checked != nil:
		l.Disabled = append(l.Disabled, specifier.Exclusion{Address: e.key.Address, Reason: l.reason})
		if !hasTwin {
			excluded.Disabled = true
			l.Excluded = append(l.Excluded, excluded)
		}
	}
}

// refuse records an endpoint that clients refuse, and returns the reason.
func (l *lister) refuse(locality, index int, e *endpointv3.LbEndpoint) string {
	wrong := rules.Refusal(l.Source.Config, e)
	if wrong == "" {
		return ""
	}
	wrong = "not published, since clients refuse all that comes with it: " + wrong
	l.refused = append(l.refused, specifier.Exclusion{Address: envoy.AddressOf(e, locality, index), Reason: wrong, Locality: locality, Index: index})
	return wrong
}
