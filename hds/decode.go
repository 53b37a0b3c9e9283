package hds

import (
	"bytes"
	"fmt"
	"slices"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
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

// errStopped ends a decoding whose result nobody waits for any more.
var errStopped = status.Error(codes.Canceled, "the stream ended while its report was decoded")

// decode reads any report, one cluster after the other, until stopped. A message
// without a report gives no entries: a heartbeat, or a first message that was sent
// again.
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
				d.add(cluster.GetClusterName(), envoyaddr.Locality(l.GetLocality()), e)
			}
		}
	}
	if !d.nested { // what old checkers send
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

// split gives the report in a message, as protobuf merges it, and whether there is a
// first message instead.
func split(message []byte) (report []byte, request bool, err error) {
	var m healthv3.HealthCheckRequestOrEndpointHealthResponse
	whole := false // whether report is of its own
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, false, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(number, kind, message[n:])
		if size < 0 {
			return nil, false, protowire.ParseError(size)
		}
		value, _ := protowire.ConsumeBytes(message[n:])
		switch {
		case kind != protowire.BytesType:
		case number == messageRequest:
			if err := proto.Unmarshal(message[:n+size], &m); err != nil {
				return nil, false, err
			}
			report, request = nil, true
		case number == messageReport && !request && report != nil:
			if !whole {
				report, whole = bytes.Clone(report), true
			}
			report = append(report, value...)
		case number == messageReport:
			report, request, whole = value, false, false
		}
		message = message[n+size:]
	}
	return report, request, nil
}

// parts are the values of one field of a message, which is of messages.
type parts struct {
	rest   []byte
	number protowire.Number
}

// next gives the next value, nil after the last.
func (p *parts) next() ([]byte, error) {
	for len(p.rest) > 0 {
		number, kind, n := protowire.ConsumeTag(p.rest)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(number, kind, p.rest[n:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		value, _ := protowire.ConsumeBytes(p.rest[n:])
		p.rest = p.rest[n+size:]
		if number == p.number && kind == protowire.BytesType {
			return slices.Clip(value), nil
		}
	}
	return nil, nil
}

func (d *decoded) add(cluster string, where health.Locality, e *healthv3.EndpointHealth) {
	d.entries = append(d.entries, entry{
		key: health.Endpoint{Cluster: cluster, Locality: where, Address: envoyaddr.Address(e.GetEndpoint().GetAddress())},
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
