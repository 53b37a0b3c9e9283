package store

import (
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/log"
)

// The bucket freeze exists only during a freeze.
var (
	freeze    = []byte("freeze")
	freezeKey = []byte("freeze")
	heldKey   = []byte("held")
)

// saveFreeze stores a freeze in place of the previous one; nil ends it. It does not wait for the
// disk; Flush does.
func (in *intake) saveFreeze(f *log.Freeze) {
	if f == nil {
		in.put(freeze, nil)
		return
	}
	rows := map[string][]byte{string(freezeKey): encodeFreeze(f), string(heldKey): nil}
	if f.Held != nil {
		rows[string(heldKey)] = encodeHeld(f.Held)
	}
	in.put(freeze, rows)
}

func encodeFreeze(f *log.Freeze) []byte {
	return marshal(&storev1.Freeze{Reason: text(f.Reason), Author: text(f.Author), Since: timestamp(f.Since), Holds: f.Held != nil})
}

// decodeFreeze returns a freeze without Held, and whether it has one.
func decodeFreeze(row []byte) (f log.Freeze, holds, ok bool) {
	var m storev1.Freeze
	if !unmarshal(row, &m) {
		return log.Freeze{}, false, false
	}
	f = log.Freeze{Reason: m.GetReason(), Author: m.GetAuthor()}
	f.Since, ok = timeIn(m.GetSince())
	return f, m.GetHolds(), ok
}

func encodeHeld(held map[health.Hash]health.Status) []byte {
	m := storev1.HeldHealth{Endpoints: make([]uint64, 0, len(held)), Statuses: make([]corev3.HealthStatus, 0, len(held))}
	for _, hash := range slices.Sorted(maps.Keys(held)) {
		m.Endpoints = append(m.Endpoints, uint64(hash))
		m.Statuses = append(m.Statuses, corev3.HealthStatus(held[hash]))
	}
	return marshal(&m)
}

func decodeHeld(row []byte) (map[health.Hash]health.Status, bool) {
	var m storev1.HeldHealth
	if !unmarshal(row, &m) || len(m.GetEndpoints()) != len(m.GetStatuses()) {
		return nil, false
	}
	held := make(map[health.Hash]health.Status, len(m.GetEndpoints()))
	for i, hash := range m.GetEndpoints() {
		status, ok := statusIn(m.GetStatuses()[i])
		if !ok {
			return nil, false
		}
		held[health.Hash(hash)] = status
	}
	return held, true
}

// goodFreeze reports whether a row of a freeze can be read.
func goodFreeze(k, row []byte) (ok bool) {
	switch string(k) {
	case string(freezeKey):
		_, _, ok = decodeFreeze(row)
	case string(heldKey):
		_, ok = decodeHeld(row)
	default:
		ok = true
	}
	return ok
}
