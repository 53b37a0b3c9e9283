package aggregate_test

// oracleRecord counts votes, of a checker or over a path.
type oracleRecord struct {
	votes, downs, contradicted, opposed int
	senders                             map[string]*oracleRecord // of a path
}

func (r *oracleRecord) share() float64 { return float64(r.contradicted) / float64(max(1, r.votes)) }

// bySeveral tells whether a share of the votes is contradicted without any one sender, too,
// unless it is the only one.
func (r *oracleRecord) bySeveral(share float64) bool {
	for _, one := range r.senders {
		others := r.contradicted - one.contradicted
		if one.contradicted > 0 && one.votes < r.votes && (others < 2 || float64(others) < share*float64(r.votes-one.votes)) {
			return false
		}
	}
	return true
}

// of gives the part of a sender.
func (r *oracleRecord) of(name string) *oracleRecord {
	if r.senders == nil {
		r.senders = map[string]*oracleRecord{}
	}
	if r.senders[name] == nil {
		r.senders[name] = &oracleRecord{}
	}
	return r.senders[name]
}

func count(r *oracleRecord, p *oraclePair, contradicted bool) {
	r.votes++
	if p.status.Down() {
		r.downs++
	}
	if contradicted {
		r.contradicted++
	}
}
