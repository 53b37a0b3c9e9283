package recording

import (
	"maps"
	"slices"
	"strconv"

	"hdsd/health"
	"hdsd/log"
)

// state encodes the restored state of a machine. It calls drain after each row.
func (o *output) state(s *log.State, h *hider, drain func()) {
	rows(o, s.Current, drain, func(hash health.Hash, held log.Health) {
		o.fixed(uint64(hash))
		o.endpoint(&held.Endpoint)
		o.byte(byte(held.Status))
		o.time(held.Since)
		o.text(held.Reason)
	})
	rows(o, s.Voted, drain, func(hash health.Hash, v health.Verdict) {
		o.fixed(uint64(hash))
		o.byte(byte(v.Status))
		o.time(v.Since)
	})
	rows(o, s.Plan, drain, func(checker string, hashes []health.Hash) {
		o.text(checker)
		o.hashes(hashes)
	})
	o.texts(s.Clusters)
	o.freeze(s.Freeze, drain)
	o.uint(uint64(len(s.Overrides)))
	for i := range s.Overrides {
		o.override(&s.Overrides[i])
	}
	rows(o, s.Trust, drain, func(checker string, t log.Trust) {
		o.text(checker)
		o.trust(&t)
	})
	// The keys of the trials are hashes of shapes. Only their order matters.
	rows(o, s.Trials, drain, func(_ string, t *log.Trials) { o.trials(t, h) })
	rows(o, s.Established, drain, func(checker string, e log.Established) {
		o.text(checker)
		o.text(e.Identity)
		o.time(e.Seen)
		o.time(e.StandIn)
		o.bool(e.Founder)
	})
	rows(o, s.Penalties, drain, func(hash health.Hash, p log.Penalty) {
		o.fixed(uint64(hash))
		o.float(p.Value)
		o.time(p.At)
		o.bool(p.Suppressed)
	})
	rows(o, s.GivenBack, drain, func(cluster string, _ bool) { o.text(cluster) })
	o.bool(s.TakenOver != nil)
	rows(o, s.TakenOver, drain, func(cluster string, _ bool) { o.text(cluster) })
	rows(o, s.Attendance, drain, func(checker string, last log.LastSeen) {
		o.text(checker)
		o.locality(&last.Locality)
		o.time(last.Lost)
	})
}

// rows encodes a map in the order of its keys.
func rows[K string | health.Hash, V any](o *output, table map[K]V, drain func(), row func(K, V)) {
	o.uint(uint64(len(table)))
	for _, key := range slices.Sorted(maps.Keys(table)) {
		row(key, table[key])
		drain()
	}
}

func (o *output) hashes(hashes []health.Hash) {
	o.uint(uint64(len(hashes)))
	for _, hash := range hashes {
		o.fixed(uint64(hash))
	}
}

func (o *output) freeze(f *log.Freeze, drain func()) {
	if o.bool(f != nil); f == nil {
		return
	}
	o.text(f.Reason)
	o.text(f.Author)
	o.time(f.Since)
	if o.bool(f.Held != nil); f.Held == nil {
		return
	}
	rows(o, f.Held, drain, func(hash health.Hash, status health.Status) {
		o.fixed(uint64(hash))
		o.byte(byte(status))
	})
}

func (o *output) trials(t *log.Trials, h *hider) {
	o.uint(uint64(len(t.Proven)))
	for _, p := range t.Proven {
		o.fixed(p.Build)
		o.fixed(h.number(p.Shape))
	}
	o.uint(uint64(len(t.Blamed)))
	for _, shape := range t.Blamed {
		o.fixed(h.number(shape))
	}
	o.uint(uint64(len(t.Losses)))
	for _, l := range t.Losses {
		o.text(l.Checker)
		o.text(l.Identity)
		o.time(l.Time)
	}
	o.uint(uint64(t.Retries))
}

// state decodes the state to restore a machine from.
func (in *input) state() *log.State {
	s := &log.State{
		Current: map[health.Hash]log.Health{}, Voted: map[health.Hash]health.Verdict{}, Plan: map[string][]health.Hash{},
		Trust: map[string]log.Trust{}, Trials: map[string]*log.Trials{}, GivenBack: map[string]bool{},
	}
	in.each(func() {
		hash := in.hash()
		s.Current[hash] = log.Health{Endpoint: in.endpoint(), Status: in.status(), Since: in.time(), Reason: in.text()}
	})
	in.each(func() {
		hash := in.hash()
		s.Voted[hash] = health.Verdict{Status: in.status(), Since: in.time()}
	})
	in.each(func() {
		checker := in.text()
		hashes := []health.Hash{}
		in.each(func() { hashes = append(hashes, in.hash()) })
		s.Plan[checker] = hashes
	})
	s.Clusters = in.texts()
	s.Freeze = in.freeze()
	in.each(func() { s.Overrides = append(s.Overrides, in.override()) })
	in.each(func() {
		checker := in.text()
		s.Trust[checker] = in.trust()
	})
	in.each(func() {
		key := strconv.Itoa(1_000_000_000 + len(s.Trials)) // keys of one length keep the order
		s.Trials[key] = in.trials()
	})
	in.each(func() {
		if s.Established == nil {
			s.Established = map[string]log.Established{}
		}
		checker := in.text()
		s.Established[checker] = log.Established{Identity: in.text(), Seen: in.time(), StandIn: in.time(), Founder: in.bool()}
	})
	in.each(func() {
		if s.Penalties == nil {
			s.Penalties = map[health.Hash]log.Penalty{}
		}
		hash := in.hash()
		s.Penalties[hash] = log.Penalty{Value: in.float(), At: in.time(), Suppressed: in.bool()}
	})
	in.each(func() { s.GivenBack[in.text()] = true })
	if in.bool() {
		s.TakenOver = map[string]bool{}
	}
	in.each(func() {
		if name := in.text(); s.TakenOver != nil {
			s.TakenOver[name] = true
		}
	})
	in.each(func() {
		if s.Attendance == nil {
			s.Attendance = log.Attendance{}
		}
		checker := in.text()
		s.Attendance[checker] = log.LastSeen{Locality: in.locality(), Lost: in.time()}
	})
	return s
}

func (in *input) hash() health.Hash { return health.Hash(in.fixed()) }

func (in *input) freeze() *log.Freeze {
	if !in.bool() {
		return nil
	}
	f := &log.Freeze{Reason: in.text(), Author: in.text(), Since: in.time()}
	if in.bool() {
		f.Held = map[health.Hash]health.Status{}
		in.each(func() {
			hash := in.hash()
			f.Held[hash] = in.status()
		})
	}
	return f
}

func (in *input) trials() *log.Trials {
	t := &log.Trials{}
	in.each(func() { t.Proven = append(t.Proven, log.Proof{Build: in.fixed(), Shape: in.fixed()}) })
	in.each(func() { t.Blamed = append(t.Blamed, in.fixed()) })
	in.each(func() {
		t.Losses = append(t.Losses, log.Loss{Checker: in.text(), Identity: in.text(), Time: in.time()})
	})
	t.Retries = int(in.uint())
	return t
}
