package store

import (
	storev1 "hdsd/gen/hdsd/store/v1"

	"hdsd/log"
)

var trials = []byte("trials")

// saveTrials stores trials by the names of their records; nil deletes a record. Others
// stay as they are. It does not wait for the disk.
func (in *intake) saveTrials(changed map[string]*log.Trials) {
	rows := make(map[string][]byte, len(changed))
	for cluster, t := range changed {
		rows[rowKey(hashOf(cluster))] = encoded(t, func(t *log.Trials) []byte { return encodeTrials(cluster, t) })
	}
	in.put(trials, rows)
}

func encodeTrials(cluster string, t *log.Trials) []byte {
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

func decodeTrials(row []byte) (cluster string, t *log.Trials, ok bool) {
	var m storev1.Trials
	if !unmarshal(row, &m) {
		return "", nil, false
	}
	t = &log.Trials{Blamed: m.GetBlamed(), Retries: int(m.GetRetries())}
	for _, p := range m.GetProven() {
		t.Proven = append(t.Proven, log.Proof{Build: p.GetBuild(), Shape: p.GetShape()})
	}
	for _, loss := range m.GetLosses() {
		date, ok := timeIn(loss.GetTime())
		if !ok {
			return "", nil, false
		}
		t.Losses = append(t.Losses, log.Loss{Checker: loss.GetChecker(), Identity: loss.GetIdentity(), Time: date})
	}
	return m.GetCluster(), t, true
}
