package store

import (
	"encoding/binary"
	"time"

	"hdsd/health"
)

// Trials is what is known of a cluster from its being tried at one checker
// first.
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

// SaveTrials stores what is known of these clusters; nil takes one out. Others
// stay as they are. It does not wait for the disk.
func (s *Store) SaveTrials(changed map[string]*Trials) {
	rows := make(map[string][]byte, len(changed))
	for cluster, t := range changed {
		rows[rowKey(health.ClusterHash(cluster))] = encoded(t, func(t *Trials) []byte { return encodeTrials(cluster, t) })
	}
	s.intake.put(trials, rows)
}
