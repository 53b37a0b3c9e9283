package store

import (
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"hdsd/health"
)

// marshal encodes a message deterministically, so that unchanged rows are recognized. It cannot
// fail: text makes all strings valid.
func marshal(m proto.Message) []byte {
	row, _ := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{}, m)
	return row
}

// unmarshal decodes a row into a message, or returns false.
func unmarshal(row []byte, m proto.Message) bool { return proto.Unmarshal(row, m) == nil }

// text replaces invalid UTF-8, which messages cannot hold.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// timestamp returns nil for the zero time.
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(timeOf(nanos(t)))
}

// timeIn reverses timestamp. It returns false for an invalid time.
func timeIn(t *timestamppb.Timestamp) (time.Time, bool) {
	if t == nil {
		return time.Time{}, true
	}
	return timeOf(nanos(t.AsTime())), t.IsValid()
}

// localityRow returns nil for no locality.
func localityRow(l health.Locality) *corev3.Locality {
	if l == (health.Locality{}) {
		return nil
	}
	return &corev3.Locality{Region: text(l.Region), Zone: text(l.Zone), SubZone: text(l.SubZone)}
}

// statusIn returns false for an unknown status.
func statusIn[E ~int32](e E) (health.Status, bool) {
	s := health.Status(e)
	return s, E(s) == e && s.Valid()
}
