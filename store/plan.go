package store

import (
	"encoding/binary"
	"slices"

	"hdsd/health"
	"hdsd/internal/packed"
)

// planVersion is the first byte of an encoded plan of one checker.
const planVersion = 1

// encodePlan writes the hashes in order, 8 bytes each. They are random, so distances
// between them would take as much.
func encodePlan(checker string, endpoints []health.Hash) []byte {
	b := make([]byte, 0, 16+len(checker)+8*len(endpoints))
	b = packed.AppendText(append(b, planVersion), checker)
	sorted := slices.Clone(endpoints)
	slices.Sort(sorted)
	for _, hash := range sorted {
		b = binary.BigEndian.AppendUint64(b, uint64(hash))
	}
	return b
}

func decodePlan(b []byte) (checker string, endpoints []health.Hash, ok bool) {
	r := packed.Reader{Rest: b}
	version := r.Byte()
	checker = r.Text()
	if version != planVersion || r.Bad || len(r.Rest)%8 != 0 {
		return "", nil, false
	}
	endpoints = make([]health.Hash, 0, len(r.Rest)/8)
	for rest := r.Rest; len(rest) > 0; rest = rest[8:] {
		endpoints = append(endpoints, health.Hash(number(rest)))
	}
	return checker, endpoints, true
}
