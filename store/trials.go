package store

import (
	"time"

	storev1 "hdsd/gen/hdsd/store/v1"
)

// Trials are the results of canaries for shapes of endpoints.
type Trials struct {
	Proven []Proof
	Blamed []uint64 // shapes that were on trial when a checker was lost
	Losses []Loss   // during trials

	// Retries counts the retries of a blocked version that a checker did not survive.
	Retries int
}

// Proof says that a build of checker survives a shape of endpoints.
type Proof struct{ Build, Shape uint64 }

// Loss is a checker that was lost.
type Loss struct {
	Checker  string
	Identity string // verified; without one, the checker's id
	Time     time.Time
}

var trials = []byte("trials")

// SaveTrials stores trials by the names of their records; nil deletes a record. Others
// stay as they are. It does not wait for the disk.
func (s *Store) SaveTrials(changed map[string]*Trials) {
	rows := make(map[string][]byte, len(changed))
	for cluster, t := range changed {
		rows[rowKey(hashOf(cluster))] = encoded(t, func(t *Trials) []byte { return encodeTrials(cluster, t) })
	}
	s.intake.put(trials, rows)
}

func encodeTrials(cluster string, t *Trials) []byte {
	m := storev1.Trials{Cluster: text(cluster), Blamed: t.Blamed, Retries: uint32(t.Retries)}
	for _, p := range t.Proven {
		m.Proven = append(m.Proven, &storev1.Trials_Proof{Build: p.Build, Shape: p.Shape})
	}
	for _, loss := range t.Losses {
		m.Losses = append(m.Losses, &storev1.Trials_Loss{
			Checker: text(loss.Checker), Identity: text(loss.Identity), Time: timestamp(loss.Time),
		})
	}
	return marshal(&m)
}

func decodeTrials(row []byte) (cluster string, t *Trials, ok bool) {
	var m storev1.Trials
	if !unmarshal(row, &m) {
		return "", nil, false
	}
	t = &Trials{Blamed: m.GetBlamed(), Retries: int(m.GetRetries())}
	for _, p := range m.GetProven() {
		t.Proven = append(t.Proven, Proof{p.GetBuild(), p.GetShape()})
	}
	for _, loss := range m.GetLosses() {
		date, ok := timeIn(loss.GetTime())
		if !ok {
			return "", nil, false
		}
		t.Losses = append(t.Losses, Loss{loss.GetChecker(), loss.GetIdentity(), date})
	}
	return m.GetCluster(), t, true
}
