package hds

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/envoy"
	"hdsd/health"
)

// Field numbers of the messages in a report.
const (
	messageRequest, messageReport            = 1, 2
	reportFlat, reportClusters               = 1, 2
	clusterName, clusterLocalities           = 1, 2
	localityLocality, localityEntries        = 1, 2
	entryEndpoint, entryStatus, entryDetails = 1, 2, 3
)

// statusCodeKey is Envoy's key for the code of the latest HTTP probe. envoyDetails is all of a
// Struct with only that number, up to its bits: the entry of the map, its key, its value and the
// value's number_value.
const (
	statusCodeKey = "http_status_code"
	envoyDetails  = "\x0a\x1d\x0a\x10" + statusCodeKey + "\x12\x09\x11"
)

// observed is the report on one endpoint.
type observed struct {
	status health.Status // strangeStatus if hdsd does not know it
	seen   bool
	code   uint16 // HTTP status code; 0 if there was none
}

const strangeStatus health.Status = math.MaxUint8

// walk reads a report that lists exactly the entries of the plan in their order into entries,
// without decoding the rest. It returns false for a report out of the ordinary, which is left to
// decode.
func (w *walker) walk(message []byte) bool {
	report, offset, found := []byte(nil), 0, false
	ok := eachField(message, func(number protowire.Number, value []byte, start int) bool {
		if number != messageReport || found {
			return false
		}
		report, offset, found = value, start, true
		return true
	})
	return ok && w.report(report, offset) && w.entry == len(w.plan.order)
}

// walker is a position in a report and in the plan compared with it.
type walker struct {
	plan    *plan
	entries []observed
	entry   int // next one expected
	group   int // the one it belongs to

	// The content of the previous report on the same plan, if known, and the places of its
	// clusters. A cluster with the same bytes has the same content.
	last   []observed
	before []stretch
	now    []stretch // of this report; may share the memory of before
	sums   *sums     // of its message

	nested int // offset of the first cluster; 0 if there is none
}

// stretch is the part of a report about one cluster.
type stretch struct {
	sum        uint64 // of its bytes
	start, end uint32 // their place
	from, to   uint32 // its entries
	group      uint32 // the first group after it
}

// repeats reports whether the next cluster of the report is unchanged, and skips it. It has its
// old place unless an earlier part has another length.
func (w *walker) repeats(cluster []byte, offset int) bool {
	if len(w.now) >= len(w.before) {
		return false
	}
	s := w.before[len(w.now)]
	unmoved := int(s.start) == offset && int(s.end) == offset+len(cluster) && w.sums.unchanged(offset, offset+len(cluster))
	if int(s.from) != w.entry || !unmoved && s.sum != sumOf(cluster) {
		return false
	}
	s.start, s.end = uint32(offset), uint32(offset+len(cluster))
	copy(w.entries[s.from:s.to], w.last[s.from:s.to])
	w.entry, w.group, w.now = int(s.to), int(s.group), append(w.now, s)
	return true
}

// report reads a report that begins at an offset of its message.
func (w *walker) report(report []byte, offset int) bool {
	ok := eachField(report, func(number protowire.Number, value []byte, start int) bool {
		if number == reportClusters {
			if w.nested == 0 {
				w.nested = offset + start
			}
			return w.cluster(value, offset+start)
		}
		return number == reportFlat
	})
	if !ok || w.nested > 0 {
		return ok
	}
	return eachField(report, func(_ protowire.Number, value []byte, _ int) bool {
		return w.next(value)
	})
}

func (w *walker) cluster(cluster []byte, offset int) bool {
	if w.repeats(cluster, offset) {
		return true
	}
	first := w.entry
	if !w.compare(cluster) {
		return false
	}
	w.now = append(w.now, stretch{
		sum: sumOf(cluster), start: uint32(offset), end: uint32(offset + len(cluster)),
		from: uint32(first), to: uint32(w.entry), group: uint32(w.group),
	})
	return true
}

// compare reads a cluster entry by entry.
func (w *walker) compare(cluster []byte) bool {
	var name []byte
	named, compared := false, false
	ok := eachField(cluster, func(number protowire.Number, value []byte, _ int) bool {
		switch {
		case number == clusterName && !named:
			name, named = value, true
			return true
		case number == clusterLocalities && named:
			compared = true
			return w.locality(name, value)
		}
		return false
	})
	// The name of a cluster without endpoints is compared with nothing.
	return ok && (compared || utf8.Valid(name))
}

func (w *walker) locality(cluster, content []byte) bool {
	if w.group == len(w.plan.groups) {
		return false
	}
	g := &w.plan.groups[w.group]
	located := false
	ok := string(cluster) == g.cluster && eachField(content, func(number protowire.Number, value []byte, _ int) bool {
		switch {
		case number == localityLocality && !located:
			located = true
			return g.hasLocality(value)
		case number == localityEntries && located && w.entry < g.end:
			return w.next(value)
		}
		return false
	})
	w.group++
	return ok && w.entry == g.end
}

func (g *group) hasLocality(locality []byte) bool {
	if bytes.Equal(locality, g.encoded) {
		return true
	}
	var l corev3.Locality
	return proto.Unmarshal(locality, &l) == nil && envoy.Locality(&l) == g.locality
}

// next reads one entry, which has to be the next one of the plan.
func (w *walker) next(entry []byte) bool {
	if w.entry == len(w.plan.order) {
		return false
	}
	o := observed{seen: true}
	endpoint := false
	last := protowire.Number(0)
	for len(entry) > 0 {
		number, kind, n := protowire.ConsumeTag(entry)
		if n < 0 || number <= last { // each field once, in order
			return false
		}
		last, entry = number, entry[n:]
		switch {
		case number == entryStatus && kind == protowire.VarintType:
			status, n := protowire.ConsumeVarint(entry)
			if n < 0 {
				return false
			}
			o.status, entry = statusOf(int32(status)), entry[n:]
		case kind == protowire.BytesType && number <= entryDetails:
			value, n := protowire.ConsumeBytes(entry)
			if n < 0 {
				return false
			}
			entry = entry[n:]
			ok := false
			switch number {
			case entryEndpoint:
				ok, endpoint = w.isAt(value), true
			case entryDetails:
				o.code, ok = detailsCode(value)
			}
			if !ok {
				return false
			}
		default:
			return false
		}
	}
	w.entries[w.entry] = o
	w.entry++
	return endpoint
}

// isAt reports whether an Endpoint has the address of the next entry.
func (w *walker) isAt(endpoint []byte) bool {
	address := w.plan.addresses[w.entry]
	if isEndpoint(endpoint, address) {
		return true
	}
	var e endpointv3.Endpoint
	return proto.Unmarshal(endpoint, &e) == nil && envoy.Address(e.GetAddress()) == address
}

// statusOf returns the status of a value of Envoy's enum.
func statusOf(value int32) health.Status {
	if value < 0 || value >= int32(strangeStatus) || !health.Status(value).Valid() {
		return strangeStatus
	}
	return health.Status(value)
}

// detailsCode reads the status code out of a google.protobuf.Struct, in the one form that Envoy
// writes or, failing that, in any.
func detailsCode(details []byte) (code uint16, ok bool) {
	if n := len(envoyDetails); len(details) == n+8 && string(details[:n]) == envoyDetails {
		return statusCode(math.Float64frombits(binary.LittleEndian.Uint64(details[n:]))), true
	}
	var s structpb.Struct
	if proto.Unmarshal(details, &s) != nil {
		return 0, false
	}
	return codeOf(&s), true
}

func codeOf(s *structpb.Struct) uint16 {
	return statusCode(s.GetFields()[statusCodeKey].GetNumberValue())
}

// statusCode returns an HTTP status code, or 0 for any other number.
func statusCode(number float64) uint16 {
	if number >= 100 && number <= 999 && number == math.Trunc(number) {
		return uint16(number)
	}
	return 0
}

// eachField calls visit for each field of a message, with the offset of its content, until
// visit refuses one. All fields of the messages that it reads are bytes; any other kind ends
// it as well. Here and in next, reading by hand takes two thirds of the time of package fields.
func eachField(b []byte, visit func(protowire.Number, []byte, int) bool) bool {
	for offset := 0; offset < len(b); {
		number, kind, n := protowire.ConsumeTag(b[offset:])
		if n < 0 || kind != protowire.BytesType {
			return false
		}
		value, m := protowire.ConsumeBytes(b[offset+n:])
		if offset += n + m; m < 0 || !visit(number, value, offset-len(value)) {
			return false
		}
	}
	return true
}
