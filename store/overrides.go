package store

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/log"
)

// The bucket voted has the verdicts by votes of endpoints under an override.
var (
	overrides = []byte("overrides")
	voted     = []byte("voted")
)

// saveOverrides stores overrides by their scopes; nil deletes one. Others stay as they
// are. It does not wait for the disk; Flush does.
func (in *intake) saveOverrides(changed map[health.Endpoint]*log.Override) {
	rows := make(map[string][]byte, len(changed))
	for scope, o := range changed {
		rows[rowKey(scope.Hash())] = encoded(o, encodeOverride)
	}
	in.put(overrides, rows)
}

// saveVoted stores the verdicts by votes of endpoints under an override, not later than the
// transitions appended before. Nil deletes a verdict, not earlier than these: while the history
// ends with an override, the file has the verdict below it.
func (in *intake) saveVoted(changed map[health.Hash]*health.Verdict) {
	rows := make(map[string][]byte, len(changed))
	for hash, v := range changed {
		rows[rowKey(hash)] = encoded(v, encodeVoted)
	}
	in.put(voted, rows)
}

func encodeOverride(o *log.Override) []byte {
	scope := &storev1.Override_Scope{Cluster: text(o.Scope.Cluster), Locality: localityRow(o.Scope.Locality), Address: text(o.Scope.Address)}
	return marshal(&storev1.Override{
		Scope: scope, Status: corev3.HealthStatus(o.Status), Reason: text(o.Reason), Author: text(o.Author),
		Since: timestamp(o.Since), Until: timestamp(o.Until),
	})
}

func decodeOverride(row []byte) (o log.Override, ok bool) {
	var m storev1.Override
	if !unmarshal(row, &m) {
		return log.Override{}, false
	}
	l := m.GetScope().GetLocality()
	o = log.Override{
		Scope: health.Endpoint{
			Cluster: m.GetScope().GetCluster(), Address: m.GetScope().GetAddress(),
			Locality: health.Locality{Region: l.GetRegion(), Zone: l.GetZone(), SubZone: l.GetSubZone()},
		},
		Reason: m.GetReason(), Author: m.GetAuthor(),
	}
	var sinceOK, untilOK bool
	o.Status, ok = statusIn(m.GetStatus())
	o.Since, sinceOK = timeIn(m.GetSince())
	o.Until, untilOK = timeIn(m.GetUntil())
	return o, ok && sinceOK && untilOK
}

func encodeVoted(v *health.Verdict) []byte {
	return marshal(&storev1.VotedHealth{Status: corev3.HealthStatus(v.Status), Since: timestamp(v.Since)})
}

func decodeVoted(row []byte) (v health.Verdict, ok bool) {
	var m storev1.VotedHealth
	if !unmarshal(row, &m) {
		return health.Verdict{}, false
	}
	var sinceOK bool
	v.Status, ok = statusIn(m.GetStatus())
	v.Since, sinceOK = timeIn(m.GetSince())
	return v, ok && sinceOK
}
