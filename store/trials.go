package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// Trials is what is known of a cluster from its being tried at one checker
// first. It must not be changed once it was handed over.
type Trials struct {
	Proven []Proof
	Blamed []uint64 // shapes that were on trial when a checker was lost
	Losses []Loss   // during trials
}

// Proof says that a build of checker has lived with a shape of endpoints.
type Proof struct{ Build, Shape uint64 }

// Loss is a checker that was lost.
type Loss struct {
	Checker string
	Time    time.Time
}

// trials is a bucket that is made with its first row, so that files from
// before it need no change.
var trials = []byte("trials")

// trialsVersion is the first byte of an encoded row.
const trialsVersion = 1

func encodeTrials(cluster string, t *Trials) []byte {
	b := appendString([]byte{trialsVersion}, cluster)
	b = binary.AppendUvarint(b, uint64(len(t.Proven)))
	for _, p := range t.Proven {
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, p.Build), p.Shape)
	}
	b = binary.AppendUvarint(b, uint64(len(t.Blamed)))
	for _, shape := range t.Blamed {
		b = binary.BigEndian.AppendUint64(b, shape)
	}
	b = binary.AppendUvarint(b, uint64(len(t.Losses)))
	for _, loss := range t.Losses {
		b = binary.BigEndian.AppendUint64(appendString(b, loss.Checker), nanos(loss.Time))
	}
	return b
}

func decodeTrials(b []byte) (cluster string, t *Trials, ok bool) {
	r := reader{rest: b}
	if r.byte() != trialsVersion {
		return "", nil, false
	}
	cluster, t = r.string(), &Trials{}
	for range r.count(16) {
		t.Proven = append(t.Proven, Proof{r.fixed(), r.fixed()})
	}
	for range r.count(8) {
		t.Blamed = append(t.Blamed, r.fixed())
	}
	for range r.count(9) {
		t.Losses = append(t.Losses, Loss{r.string(), timeOf(r.fixed())})
	}
	return cluster, t, !r.bad && len(r.rest) == 0
}

// count reads how many values follow, each of which takes so many bytes at
// least.
func (r *reader) count(least int) int {
	n := r.uvarint()
	if n > uint64(len(r.rest)/least) {
		r.fail()
		return 0
	}
	return int(n)
}

// fixed reads a number of 8 bytes.
func (r *reader) fixed() uint64 {
	if len(r.rest) < 8 {
		r.fail()
		return 0
	}
	n := number(r.rest)
	r.rest = r.rest[8:]
	return n
}

// Trials gives what is stored of trials, by cluster.
func (s *Store) Trials() (map[string]*Trials, error) {
	all := map[string]*Trials{}
	err := s.view(func(tx *bolt.Tx) error {
		rows := tx.Bucket(trials)
		if rows == nil {
			return nil
		}
		return rows.ForEach(func(k, v []byte) error {
			row, ok := unseal(k, v)
			if ok {
				var name string
				var t *Trials
				if name, t, ok = decodeTrials(row); ok {
					all[name] = t
				}
			}
			s.skipUnless(ok, trials, k)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// SaveTrials stores what is known of these clusters; nil takes one out. Others
// stay as they are. It does not wait for the disk.
func (s *Store) SaveTrials(changed map[string]*Trials) {
	s.intake.work(func() {
		if s.intake.trials == nil {
			s.intake.trials = map[string]*Trials{}
		}
		maps.Copy(s.intake.trials, changed)
		s.intake.asked.others++
	})
}

func (g *group) writeTrials(tx *bolt.Tx) error {
	if len(g.trials) == 0 {
		return nil
	}
	rows, err := tx.CreateBucketIfNotExists(trials)
	if err != nil {
		return err
	}
	for cluster, t := range g.trials {
		k := key(uint64(health.ClusterHash(cluster)))
		if t == nil {
			err = rows.Delete(k)
		} else if row := seal(k, encodeTrials(cluster, t)); !bytes.Equal(row, rows.Get(k)) {
			err = rows.Put(k, row)
		}
		if err != nil {
			return fmt.Errorf("trials of %q: %w", cluster, err)
		}
	}
	return nil
}

// goodTrials tells whether a row is whole.
func goodTrials(k, v []byte) bool {
	row, ok := unseal(k, v)
	if ok {
		_, _, ok = decodeTrials(row)
	}
	return ok
}
