package batch

import (
	"maps"
	"math"
	"slices"

	"hdsd/health"
	"hdsd/log"
)

// statuses encodes health by endpoint, in the order of the hashes.
func (e *encoder) statuses(statuses map[health.Hash]health.Status) {
	e.list(len(statuses), statusMemory)
	for _, hash := range slices.Sorted(maps.Keys(statuses)) {
		e.hash(hash)
		e.byte(byte(statuses[hash]))
	}
}

func (d *decoder) statuses() map[health.Hash]health.Status {
	count := d.list(9, statusMemory)
	statuses := make(map[health.Hash]health.Status, count)
	for range count {
		hash := d.hash()
		statuses[hash] = d.status()
	}
	if len(statuses) < count {
		d.Fail() // an endpoint came twice
	}
	return statuses
}

// encodePlan encodes the plan. Nil endpoints remove a checker.
func encodePlan(e *encoder, l *log.Entry) {
	if len(l.Plan) == 0 {
		return
	}
	e.list(len(l.Plan), planMemory)
	for _, checker := range slices.Sorted(maps.Keys(l.Plan)) {
		e.text(checker)
		if e.bool(l.Plan[checker] != nil); l.Plan[checker] != nil {
			e.hashes(l.Plan[checker])
		}
	}
}

func decodePlan(d *decoder, l *log.Entry) {
	count := d.list(2, planMemory)
	l.Plan = make(map[string][]health.Hash, count)
	for range count {
		checker := d.text()
		if l.Plan[checker] = nil; d.bool() {
			l.Plan[checker] = d.hashes()
		}
	}
	if len(l.Plan) < count {
		d.Fail()
	}
}

func encodeEstablished(e *encoder, l *log.Entry) {
	encodeRows(e, l.Established, establishedMemory, e.text, func(k *log.Established) {
		e.text(k.Identity)
		e.time(k.Seen)
		e.time(k.StandIn)
		e.bool(k.Founder)
	})
}

func decodeEstablished(d *decoder, l *log.Entry) {
	l.Established = decodeRows(d, 2, establishedMemory, d.text, func() log.Established {
		return log.Established{Identity: d.text(), Seen: d.time(), StandIn: d.time(), Founder: d.bool()}
	})
}

func encodeTrials(e *encoder, l *log.Entry) {
	encodeRows(e, l.Trials, trialsMemory, e.text, func(t *log.Trials) {
		e.list(len(t.Proven), proofMemory)
		for _, p := range t.Proven {
			e.fixed(p.Build)
			e.fixed(p.Shape)
		}
		e.list(len(t.Blamed), shapeMemory)
		for _, shape := range t.Blamed {
			e.fixed(shape)
		}
		e.list(len(t.Losses), lossMemory)
		for i := range t.Losses {
			e.text(t.Losses[i].Checker)
			e.text(t.Losses[i].Identity)
			e.time(t.Losses[i].Time)
		}
		e.uint(uint64(t.Retries))
	})
}

func decodeTrials(d *decoder, l *log.Entry) {
	l.Trials = decodeRows(d, 2, trialsMemory, d.text, func() (t log.Trials) {
		for range d.list(16, proofMemory) {
			t.Proven = append(t.Proven, log.Proof{Build: d.Uint64(), Shape: d.Uint64()})
		}
		for range d.list(8, shapeMemory) {
			t.Blamed = append(t.Blamed, d.Uint64())
		}
		for range d.list(3, lossMemory) {
			t.Losses = append(t.Losses, log.Loss{Checker: d.text(), Identity: d.text(), Time: d.time()})
		}
		retries := d.Uvarint()
		if retries > math.MaxInt32 {
			d.Fail()
		}
		t.Retries = int(retries)
		return t
	})
}

func encodePenalties(e *encoder, l *log.Entry) {
	encodeRows(e, l.Penalties, penaltyMemory, e.hash, func(p *log.Penalty) {
		e.fixed(math.Float64bits(p.Value))
		e.time(p.At)
		e.bool(p.Suppressed)
	})
}

func decodePenalties(d *decoder, l *log.Entry) {
	l.Penalties = decodeRows(d, 9, penaltyMemory, d.hash, func() log.Penalty {
		return log.Penalty{Value: math.Float64frombits(d.Uint64()), At: d.time(), Suppressed: d.bool()}
	})
}
