package store

import (
	"fmt"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// present is the value of rows whose key says everything.
var present = []byte{1}

// write puts a group into the file. Writing it twice is writing it once.
func (g *group) write(tx *bolt.Tx) error {
	for _, step := range []func(*bolt.Tx) error{g.writeGap, g.writeHistory, g.writeCurrent, g.writePlan, g.writeRows} {
		if err := step(tx); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) writeHistory(tx *bolt.Tx) error {
	main, cluster, endpoint := tx.Bucket(transitions), tx.Bucket(byCluster), tx.Bucket(byEndpoint).Cursor()
	main.FillPercent = 0.95 // its keys only grow
	for i, at := range g.places {
		t, k := &g.transitions[i], key(at.recorded)
		if err := main.Put(k, seal(k, appendRecord(nil, at.recorded, t))); err != nil {
			return err
		}
		if err := cluster.Put(key(at.cluster, at.recorded), present); err != nil {
			return err
		}
		if err := putInIndex(endpoint, at, t); err != nil {
			return err
		}
	}
	return nil
}

// writeCurrent writes the current health of endpoints. Transitions dropped from the queue
// are older than those still in it.
func (g *group) writeCurrent(tx *bolt.Tx) error {
	latest := make(map[health.Hash]*health.Transition, len(g.transitions))
	for i, at := range g.places {
		latest[at.endpoint] = &g.transitions[i]
	}
	for hash, t := range g.overflow {
		if latest[hash] == nil {
			latest[hash] = &t
		}
	}
	for hash, t := range latest {
		if err := putCurrent(tx, hash, t); err != nil {
			return err
		}
	}
	return nil
}

func putCurrent(tx *bolt.Tx, hash health.Hash, t *health.Transition) error {
	rows, cluster := tx.Bucket(current), uint64(health.ClusterHash(t.Endpoint.Cluster))
	k := key(cluster, uint64(hash))
	if rows.Get(k) == nil {
		if err := tx.Bucket(addresses).Put(addressKey(t.Endpoint.Address, cluster, uint64(hash)), present); err != nil {
			return err
		}
	}
	return rows.Put(k, seal(k, appendRecord(nil, 0, t)))
}

// addressKey returns the key by which an endpoint is found by its address.
func addressKey(address string, more ...uint64) []byte {
	return append(key(uint64(hashOf(address))), key(more...)...)
}

// hashOf stands for a name in keys: of an address, a checker or a cluster.
func hashOf(name string) health.Hash { return health.ClusterHash(name) }

func (g *group) writePlan(tx *bolt.Tx) error {
	rows := tx.Bucket(plan)
	for checker, endpoints := range g.plan {
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
