package store

import (
	"bytes"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// present is the value of rows whose key says everything.
var present = []byte{1}

// write puts a group into the file. It is idempotent.
func (g *group) write(tx *bolt.Tx) error {
	for _, step := range []func(*bolt.Tx) error{g.writeGap, g.writeHistory, g.writeMoves, g.writeCurrent, g.writePlan, g.writeRows, g.writeCursor} {
		if err := step(tx); err != nil {
			return err
		}
	}
	return nil
}

// writeHistory writes the transitions in order, and each index in the order of its keys, so that
// bbolt reads and changes one page after the other.
func (g *group) writeHistory(tx *bolt.Tx) error {
	main, cluster, endpoint := tx.Bucket(transitions), tx.Bucket(byCluster), tx.Bucket(byEndpoint).Cursor()
	main.FillPercent = 0.95 // its keys only grow
	for i := range g.places {
		p := &g.places[i]
		k := key(p.recorded)
		if err := main.Put(k, seal(k, appendRecord(nil, p.recorded, p.transition))); err != nil {
			return err
		}
	}
	sorted := slices.Clone(g.places)
	slices.SortFunc(sorted, place.compareCluster)
	for i := range sorted {
		if err := cluster.Put(key(sorted[i].cluster, sorted[i].recorded), present); err != nil {
			return err
		}
	}
	slices.SortFunc(sorted, place.compareEndpoint)
	for i := range sorted {
		if err := putInIndex(endpoint, &sorted[i]); err != nil {
			return err
		}
	}
	return nil
}

// writeCurrent writes the current health of endpoints. Transitions dropped from the queue
// are older than those still in it.
func (g *group) writeCurrent(tx *bolt.Tx) error {
	last := make([]place, 0, len(g.overflow)+len(g.places))
	for _, t := range g.overflow {
		last = append(last, placeOf(0, &t))
	}
	last = append(last, g.places...)
	slices.SortFunc(last, place.compareEndpoint)
	return putCurrent(tx, last)
}

// putCurrent writes the health of endpoints: the last place of each counts.
func putCurrent(tx *bolt.Tx, sorted []place) error {
	rows := tx.Bucket(current)
	var fresh [][]byte
	for i := range sorted {
		p := &sorted[i]
		if i+1 < len(sorted) && p.sameEndpoint(&sorted[i+1]) {
			continue
		}
		k := key(p.cluster, uint64(p.endpoint))
		if rows.Get(k) == nil {
			fresh = append(fresh, addressKey(p.transition.Endpoint.Address, p.cluster, uint64(p.endpoint)))
		}
		if err := rows.Put(k, seal(k, appendRecord(nil, 0, p.transition))); err != nil {
			return err
		}
	}
	slices.SortFunc(fresh, bytes.Compare)
	for _, k := range fresh {
		if err := tx.Bucket(addresses).Put(k, present); err != nil {
			return err
		}
	}
	return nil
}

// addressKey returns the key by which an endpoint is found by its address.
func addressKey(address string, parts ...uint64) []byte {
	return append(key(uint64(hashOf(address))), key(parts...)...)
}

// hashOf returns the hash that stands in keys for the name of an address, a checker or a
// cluster.
func hashOf(name string) health.Hash { return health.ClusterHash(name) }

func (g *group) writePlan(tx *bolt.Tx) error {
	if err := putPlan(tx, g.plan); err != nil {
		return err
	}
	for _, s := range g.portions {
		if err := putPlan(tx, s.plan); err != nil {
			return err
		}
	}
	return nil
}

func putPlan(tx *bolt.Tx, changed map[string][]health.Hash) error {
	rows := tx.Bucket(plan)
	for checker, endpoints := range changed {
		var row []byte
		if endpoints != nil {
			row = encodePlan(checker, endpoints)
		}
		if err := putRow(rows, key(uint64(hashOf(checker))), row); err != nil {
			return fmt.Errorf("plan of %q: %w", checker, err)
		}
	}
	return nil
}
