package hds

import (
	"fmt"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
)

// What a report may have, however little is assigned. Envoy lists each endpoint that
// it checks twice, flat and by cluster, in some 60 bytes and its address.
const (
	fewEntries    = 1000
	fewBytes      = 256 << 10
	bytesPerEntry = 64 // beside the address
	spare         = 2  // more may be listed than is assigned by this factor
)

// What a first message may have: an Envoy's node has some 50 kB, and hundreds of
// extensions.
const (
	maxFirstBytes  = maxNodeTaken + 64<<10
	maxFirstFields = 64 << 10
)

// checkFirst gives an error if a first message is too large.
func checkFirst(size int) error {
	if size > maxFirstBytes {
		return status.Errorf(codes.InvalidArgument, "the first message has %d bytes: make the node's metadata smaller; at most %d are taken", size, maxFirstBytes)
	}
	return nil
}

// checkFirstFields gives an error if a first message has more fields than any node.
func checkFirstFields(message []byte) error {
	if tooManyFields(message, new(healthv3.HealthCheckRequestOrEndpointHealthResponse), maxFirstFields) {
		return fmt.Errorf("the first message has more than %d fields: make the node smaller", maxFirstFields)
	}
	return nil
}

// assigned gives the most endpoints, and bytes of their addresses, that a report on
// one of the plans can list.
func (l plans) assigned() (entries, bytes int) {
	for _, p := range l {
		entries, bytes = max(entries, len(p.order)), max(bytes, p.size)
	}
	return entries, bytes
}

// expectedBytes is how many bytes a report has at most that lists twice what is
// assigned.
func (l plans) expectedBytes() int {
	entries, bytes := l.assigned()
	const forms = 2 // flat, and by cluster
	return spare * forms * (bytes + bytesPerEntry*entries)
}

// maxBytes is how many bytes a report may have.
func (l plans) maxBytes() int { return fewBytes + l.expectedBytes() }

// checkBytes gives an error if a report of this size is more than a multiple of what
// is assigned.
func (l plans) checkBytes(size int) error {
	if most := l.maxBytes(); size > most {
		entries, _ := l.assigned()
		return status.Errorf(codes.ResourceExhausted, "the report has %d bytes, and the checker is assigned %d endpoints, for which %d bytes are taken: report only what the specifier lists", size, entries, most)
	}
	return nil
}

// checkEntries gives an error if a report lists more than twice what is assigned. It
// counts before anything is decoded: an entry may take two bytes on the wire. It
// leaves invalid input to decode.
func (l plans) checkEntries(message []byte) error {
	assigned, _ := l.assigned()
	c := entryCounter{most: max(fewEntries, spare*assigned)}
	if !c.count(message) {
		return status.Errorf(codes.ResourceExhausted, "the report lists more than %d endpoints, clusters or localities, and the checker is assigned %d endpoints: report only what the specifier lists", c.most, assigned)
	}
	return nil
}

// entryCounter counts the entries of a report, the flat ones apart from the others, and
// the clusters and localities.
type entryCounter struct{ most, flat, nested, groups int }

// count reports whether there are not too many.
func (c *entryCounter) count(message []byte) bool {
	eachBytes(message, func(number protowire.Number, value []byte) bool {
		switch number {
		case messageRequest:
			return !tooManyFields(value, new(healthv3.HealthCheckRequest), maxFirstFields) || c.stop()
		case messageReport:
			c.report(value)
		}
		return c.within()
	})
	return c.within()
}

func (c *entryCounter) within() bool {
	return c.flat <= c.most && c.nested <= c.most && c.groups <= spare*c.most
}

// stop makes the count too many.
func (c *entryCounter) stop() bool {
	c.flat = c.most + 1
	return false
}

func (c *entryCounter) report(report []byte) {
	eachBytes(report, func(number protowire.Number, value []byte) bool {
		switch number {
		case reportFlat:
			c.flat++
			c.entry(value)
		case reportClusters:
			c.groups++
			eachBytes(value, func(number protowire.Number, value []byte) bool {
				if number == clusterLocalities {
					c.locality(value)
				}
				return c.within()
			})
		}
		return c.within()
	})
}

func (c *entryCounter) locality(locality []byte) {
	c.groups++
	eachBytes(locality, func(number protowire.Number, value []byte) bool {
		if number == localityEntries {
			c.nested++
			c.entry(value)
		}
		return c.within()
	})
}

// maxEntryFields is how many fields an entry may have. Envoy writes some ten.
const maxEntryFields = 1000

// entry refuses a report with an entry that has very many fields. Short ones cannot.
func (c *entryCounter) entry(entry []byte) {
	if len(entry) > 2*maxEntryFields && tooManyFields(entry, new(healthv3.EndpointHealth), maxEntryFields) {
		c.stop()
	}
}

func tooManyFields(encoded []byte, of proto.Message, most int) bool {
	return wire.CountFields(most, of.ProtoReflect().Descriptor(), encoded) < 0
}

// eachBytes calls visit for the fields of a message that have bytes, until visit refuses
// one, or what follows is invalid.
func eachBytes(b []byte, visit func(protowire.Number, []byte) bool) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		size := protowire.ConsumeFieldValue(number, kind, b[n:])
		if size < 0 {
			return
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b[n:])
			if !visit(number, value) {
				return
			}
		}
		b = b[n+size:]
	}
}
