package store

import (
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
	"hdsd/log"
)

// State reads everything but the history in one transaction, in time proportional to the
// endpoints. It skips and reports damaged rows.
func (s *Store) State() (log.State, error) {
	var found log.State
	err := s.db.view(func(tx *bolt.Tx) error {
		rows := stateReader{tx: tx, damage: s.damage, time: s.time}
		found = log.State{
			Current: rows.current(), Voted: rows.voted(), Plan: rows.plan(), Clusters: rows.clusters(),
			Freeze: rows.freeze(), Overrides: rows.overrides(), Trust: rows.trust(), Trials: rows.trials(),
			Established: rows.established(), Penalties: rows.penalties(), GivenBack: rows.namesIn(givenBack), TakenOver: rows.namesIn(takenOver), Attendance: rows.attendance(),
		}
		return nil
	})
	s.db.unload() // the pages of a large history are as much as all that a start keeps
	if err != nil {
		return log.State{}, fmt.Errorf("read the stored state: %w", err)
	}
	return found, nil
}

// stateReader reads the rows of one transaction.
type stateReader struct {
	tx     *bolt.Tx
	damage *damage
	time   *timekeeper
}

func (r stateReader) current() map[health.Hash]log.Health {
	held := map[health.Hash]log.Health{}
	shared, endpoints, dates := names{}, r.tx.Bucket(byEndpoint).Cursor(), r.time.dates(r.tx)
	r.damage.forEach(r.tx, current, func(k, row []byte) bool {
		t, ok := decodeCurrent(k, row, shared)
		if ok {
			dates.correctLast(endpoints, k, &t)
			held[health.Hash(number(k[8:]))] = log.Health{Endpoint: t.Endpoint, Status: t.To, Since: t.Time, Reason: t.Reason}
		}
		return ok
	})
	return held
}

func (r stateReader) voted() map[health.Hash]health.Verdict {
	verdicts := map[health.Hash]health.Verdict{}
	r.damage.forEach(r.tx, voted, func(k, row []byte) bool {
		v, ok := decodeVoted(row)
		if ok = ok && len(k) == 8; ok {
			verdicts[health.Hash(number(k))] = v
		}
		return ok
	})
	return verdicts
}

func (r stateReader) plan() map[string][]health.Hash {
	byChecker := map[string][]health.Hash{}
	r.damage.forEach(r.tx, plan, func(_, row []byte) bool {
		checker, endpoints, ok := decodePlan(row)
		if ok {
			byChecker[checker] = endpoints
		}
		return ok
	})
	return byChecker
}

func (r stateReader) clusters() (names []string) {
	r.damage.forEach(r.tx, clusters, func(_, name []byte) bool {
		names = append(names, string(name))
		return true
	})
	slices.Sort(names)
	return names
}

// freeze returns a freeze even if it is damaged: a bad page must not end it.
func (r stateReader) freeze() *log.Freeze {
	rows := r.tx.Bucket(freeze)
	if rows == nil {
		return nil
	}
	row, ok := unseal(freezeKey, rows.Get(freezeKey))
	f, holds, good := decodeFreeze(row)
	if r.damage.unless(ok && good, freeze, freezeKey); !ok || !good {
		return &log.Freeze{Reason: "hdsd was frozen, but the stored reason is damaged", Author: "unknown", Since: r.time.now()}
	}
	if holds {
		row, ok = unseal(heldKey, rows.Get(heldKey))
		f.Held, good = decodeHeld(row)
		if r.damage.unless(ok && good, freeze, heldKey); !ok || !good {
			f.Held = nil
		}
	}
	return &f
}

func (r stateReader) overrides() (found []log.Override) {
	r.damage.forEach(r.tx, overrides, func(_, row []byte) bool {
		o, ok := decodeOverride(row)
		if ok {
			found = append(found, o)
		}
		return ok
	})
	return found
}

func (r stateReader) trust() map[string]log.Trust {
	byChecker := map[string]log.Trust{}
	r.damage.forEach(r.tx, trust, func(k, row []byte) bool {
		t, ok := decodeTrust(row)
		if ok {
			byChecker[string(k)] = t
		}
		return ok
	})
	return byChecker
}

func (r stateReader) trials() map[string]*log.Trials {
	byCluster := map[string]*log.Trials{}
	r.damage.forEach(r.tx, trials, func(_, row []byte) bool {
		cluster, t, ok := decodeTrials(row)
		if ok {
			byCluster[cluster] = t
		}
		return ok
	})
	return byCluster
}
