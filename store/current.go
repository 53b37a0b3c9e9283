package store

import (
	"hdsd/health"
)

// openCurrent reads a row of current health and its checksum.
func openCurrent(k, v []byte, shared names) (health.Transition, bool) {
	row, ok := unseal(k, v)
	if !ok {
		return health.Transition{}, false
	}
	return decodeCurrent(k, row, shared)
}

// decodeCurrent reads a row of current health.
func decodeCurrent(k, row []byte, shared names) (health.Transition, bool) {
	if len(k) != 16 {
		return health.Transition{}, false
	}
	return decodeRecord(row, 0, shared)
}
