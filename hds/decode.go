package hds

import (
	"fmt"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/health"
	"hdsd/internal/envoyaddr"
)

// decoded is a report that was decoded as a whole.
type decoded struct {
	entries []entry
	nested  bool // entries have cluster and locality; else only an address
	empty   bool // no report inside
	request bool // a first message that was sent again
}

type entry struct {
	key health.Endpoint
	observed
}

// decode reads any report. A message without a report gives no entries: a
// heartbeat, or a first message that was sent again.
func decode(message []byte) (decoded, error) {
	var m healthv3.HealthCheckRequestOrEndpointHealthResponse
	if err := proto.Unmarshal(message, &m); err != nil {
		return decoded{}, fmt.Errorf("reading a report: %w", err)
	}
	report := m.GetEndpointHealthResponse()
	d := decoded{nested: len(report.GetClusterEndpointsHealth()) > 0}
	for _, cluster := range report.GetClusterEndpointsHealth() {
		for _, l := range cluster.GetLocalityEndpointsHealth() {
			d.add(cluster.GetClusterName(), envoyaddr.Locality(l.GetLocality()), l.GetEndpointsHealth())
		}
	}
	if !d.nested {
		d.add("", health.Locality{}, report.GetEndpointsHealth()) //nolint:staticcheck // what old checkers send
	}
	d.request = m.GetHealthCheckRequest() != nil
	d.empty = !d.nested && len(d.entries) == 0
	return d, nil
}

func (d *decoded) add(cluster string, where health.Locality, entries []*healthv3.EndpointHealth) {
	for _, e := range entries {
		d.entries = append(d.entries, entry{
			key: health.Endpoint{Cluster: cluster, Locality: where, Address: envoyaddr.Address(e.GetEndpoint().GetAddress())},
			observed: observed{
				status: statusOf(int32(e.GetHealthStatus())), seen: true, code: codeOf(e.GetHealthMetadata()),
			},
		})
	}
}

// follows reports whether the entries are exactly those of p in their order.
func (d *decoded) follows(p *plan) bool {
	if len(d.entries) != len(p.order) {
		return false
	}
	i := 0
	for _, g := range p.groups {
		for ; i < g.end; i++ {
			key := &d.entries[i].key
			if key.Address != p.addresses[i] || d.nested && (key.Cluster != g.cluster || key.Locality != g.locality) {
				return false
			}
		}
	}
	return true
}

// find gives the index in p of the endpoint that an entry is about. It is known
// without an index if several have that address.
func (d *decoded) find(e *entry, p *plan) (index int, known bool) {
	if d.nested {
		index, known = p.keys()[e.key]
	} else {
		index, known = p.uniqueAddresses()[e.key.Address]
	}
	if !known {
		return -1, false
	}
	return index, true
}
