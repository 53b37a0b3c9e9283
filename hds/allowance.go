package hds

import (
	"fmt"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/fields"
)

// The bounds of a report for a small assignment. Envoy lists each endpoint twice, flat and by
// cluster, in some 60 bytes and its address.
const (
	fewEntries    = 1000
	fewBytes      = 256 << 10
	bytesPerEntry = 64 // beside the address
	spare         = 2  // a report may list more than its assignment by this factor
)

// The bounds of a first message: an Envoy's node has some 50 kB, and hundreds of extensions.
const (
	maxFirstBytes  = maxNodeTaken + 64<<10
	maxFirstFields = 64 << 10
)

// checkFirst returns an error if a first message is too large.
func checkFirst(size int) error {
	if size > maxFirstBytes {
		return status.Errorf(codes.InvalidArgument, "the first message has %d bytes: make the node's metadata smaller; at most %d are taken", size, maxFirstBytes)
	}
	return nil
}

// checkFirstFields returns an error if a first message has more fields than any node.
func checkFirstFields(message []byte) error {
	if tooManyFields(message, new(healthv3.HealthCheckRequestOrEndpointHealthResponse), maxFirstFields) {
		return fmt.Errorf("the first message has more than %d fields: make the node smaller", maxFirstFields)
	}
	return nil
}

// assigned returns the largest number of endpoints, and bytes of their addresses, that a report
// on one of the plans can list.
func (l plans) assigned() (entries, bytes int) {
	for _, p := range l {
		entries, bytes = max(entries, len(p.order)), max(bytes, p.size)
	}
	return entries, bytes
}

// expectedBytes bounds the bytes of a report that lists twice its assignment.
func (l plans) expectedBytes() int {
	entries, bytes := l.assigned()
	const forms = 2 // flat, and by cluster
	return spare * forms * (bytes + bytesPerEntry*entries)
}

// maxBytes bounds the bytes of a report.
func (l plans) maxBytes() int { return fewBytes + l.expectedBytes() }

// checkBytes returns an error if a report of this size exceeds a multiple of its assignment.
func (l plans) checkBytes(size int) error {
	if limit := l.maxBytes(); size > limit {
		entries, _ := l.assigned()
		return status.Errorf(codes.ResourceExhausted, "the report has %d bytes, and the checker is assigned %d endpoints, for which %d bytes are taken: report only what the specifier lists", size, entries, limit)
	}
	return nil
}

// checkEntries returns an error if a report lists more than twice its assignment. It counts
// before anything is decoded: an entry may take two bytes on the wire. It leaves invalid input
// to decode.
func (l plans) checkEntries(message []byte) error {
	assigned, _ := l.assigned()
	c := entryCounter{limit: max(fewEntries, spare*assigned)}
	if !c.count(message) {
		return status.Errorf(codes.ResourceExhausted, "the report lists more than %d endpoints, clusters or localities, and the checker is assigned %d endpoints: report only what the specifier lists", c.limit, assigned)
	}
	return nil
}

// entryCounter counts the entries of a report, flat and nested ones apart, and the clusters and
// localities.
type entryCounter struct{ limit, flat, nested, groups int }

// count reports whether the entries are within the limit.
func (c *entryCounter) count(message []byte) bool {
	for f := range fields.All(message) {
		switch {
		case f.Is(messageRequest) && tooManyFields(f.Value, new(healthv3.HealthCheckRequest), maxFirstFields):
			return false
		case f.Is(messageReport):
			c.report(f.Value)
		}
		if !c.withinLimit() {
			return false
		}
	}
	return true
}

func (c *entryCounter) withinLimit() bool {
	return c.flat <= c.limit && c.nested <= c.limit && c.groups <= spare*c.limit
}

func (c *entryCounter) report(report []byte) {
	for f := range fields.All(report) {
		switch {
		case f.Is(reportFlat):
			c.flat++
			c.entry(f.Value)
		case f.Is(reportClusters):
			c.groups++
			c.cluster(f.Value)
		}
		if !c.withinLimit() {
			return
		}
	}
}

func (c *entryCounter) cluster(cluster []byte) {
	for f := range fields.All(cluster) {
		if f.Is(clusterLocalities) {
			c.groups++
			c.locality(f.Value)
		}
		if !c.withinLimit() {
			return
		}
	}
}

func (c *entryCounter) locality(locality []byte) {
	for f := range fields.All(locality) {
		if f.Is(localityEntries) {
			c.nested++
			c.entry(f.Value)
		}
		if !c.withinLimit() {
			return
		}
	}
}

// maxEntryFields bounds the fields of an entry. Envoy writes some ten.
const maxEntryFields = 1000

// entry refuses a report with an entry of too many fields. Short ones cannot have them.
func (c *entryCounter) entry(entry []byte) {
	if len(entry) > 2*maxEntryFields && tooManyFields(entry, new(healthv3.EndpointHealth), maxEntryFields) {
		c.flat = c.limit + 1
	}
}

func tooManyFields(encoded []byte, m proto.Message, limit int) bool {
	return fields.Count(limit, m.ProtoReflect().Descriptor(), encoded) < 0
}
