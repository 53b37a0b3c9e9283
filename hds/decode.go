package hds

import (
	"cmp"
	"fmt"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/envoy/fields"
	"hdsd/health"
)

// decoded is a fully decoded report.
type decoded struct {
	entries []entry
	nested  bool // entries have cluster and locality; else only an address
	empty   bool // no report inside
	request bool // a repeated first message
}

type entry struct {
	key health.Endpoint
	observed
}

// errStopped ends a decoding without a receiver for its result.
var errStopped = status.Error(codes.Canceled, "the stream ended while its report was decoded")

// decode reads any report, one cluster after the other, until stopped. A message without a
// report has no entries: a heartbeat, or a repeated first message.
func decode(message []byte, stopped func() bool) (decoded, error) {
	report, request, err := split(message)
	if err != nil {
		return decoded{}, fmt.Errorf("reading a report: %w", err)
	}
	d := decoded{request: request}
	nested := parts{report, reportClusters}
	for value, err := nested.next(); value != nil || err != nil; value, err = nested.next() {
		if err == nil && stopped() {
			return decoded{}, errStopped
		}
		var cluster healthv3.ClusterEndpointsHealth
		if err == nil {
			err = proto.Unmarshal(value, &cluster)
		}
		if err != nil {
			return decoded{}, fmt.Errorf("reading a report: %w", err)
		}
		d.nested = true
		for _, l := range cluster.GetLocalityEndpointsHealth() {
			for _, e := range l.GetEndpointsHealth() {
				d.add(cluster.GetClusterName(), envoy.Locality(l.GetLocality()), e)
			}
		}
	}
	if !d.nested { // the form of old checkers
		if err := d.addFlat(report, stopped); err != nil {
			return decoded{}, err
		}
	}
	d.empty = !d.nested && len(d.entries) == 0
	return d, nil
}

func (d *decoded) addFlat(report []byte, stopped func() bool) error {
	flat := parts{report, reportFlat}
	for value, err := flat.next(); value != nil || err != nil; value, err = flat.next() {
		var e healthv3.EndpointHealth
		if err == nil {
			err = proto.Unmarshal(value, &e)
		}
		if err != nil {
			return fmt.Errorf("reading a report: %w", err)
		}
		d.add("", health.Locality{}, &e)
		if len(d.entries)%fewEntries == 0 && stopped() {
			return errStopped
		}
	}
	return nil
}

// split returns the report in a message, as protobuf merges it, and whether there is a first
// message instead.
func split(message []byte) (report []byte, request bool, err error) {
	var m healthv3.HealthCheckRequestOrEndpointHealthResponse
	var invalid error
	err = fields.Each(message, func(f *fields.Field) bool {
		switch {
		case f.Is(messageRequest):
			invalid = proto.Unmarshal(f.Raw, &m)
			report, request = nil, true
		case f.Is(messageReport):
			if request {
				report, request = nil, false
			}
			report = fields.Merge(report, f.Value)
		}
		return invalid == nil
	})
	return report, request, cmp.Or(err, invalid)
}

// parts are the values of one message field.
type parts struct {
	rest   []byte
	number protowire.Number
}

// next returns the next value, nil after the last.
func (p *parts) next() ([]byte, error) {
	for len(p.rest) > 0 {
		f, err := fields.Next(p.rest)
		if err != nil {
			return nil, err
		}
		if p.rest = p.rest[len(f.Raw):]; f.Is(p.number) {
			return f.Value, nil
		}
	}
	return nil, nil
}

func (d *decoded) add(cluster string, locality health.Locality, e *healthv3.EndpointHealth) {
	d.entries = append(d.entries, entry{
		key: health.Endpoint{Cluster: cluster, Locality: locality, Address: envoy.Address(e.GetEndpoint().GetAddress())},
		observed: observed{
			status: statusOf(int32(e.GetHealthStatus())), seen: true, code: codeOf(e.GetHealthMetadata()),
		},
	})
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

// find returns the index in p of an entry's endpoint. It is known without an index if several
// endpoints have that address.
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
