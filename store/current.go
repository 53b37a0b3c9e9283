package store

import (
	"hdsd/health"
)

// openCurrent reads a row of current health and its checksum.
func openCurrent(k, v []byte, shared names) (health.Transition, bool) {
	row, ok := unseal(k, v)
	if !ok || len(k) != 16 {
		return health.Transition{}, false
	}
	return decodeRecord(row, 0, shared)
}

// decodeCurrent reads a row of current health without its observations.
func decodeCurrent(k, row []byte, shared names) (health.Transition, bool) {
	if len(k) != 16 {
		return health.Transition{}, false
	}
	return decodeBrief(row, 0, shared)
}
