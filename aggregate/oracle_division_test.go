package aggregate_test

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"hdsd/aggregate"
	"hdsd/health"
)

// oracleDivision is a zone with cut paths, or one whose paths a lone checker may not
// cut any more.
type oracleDivision struct {
	began, until time.Duration
	firm         time.Duration // while lone: when others have contradicted it for long enough
	recent       time.Duration // until when a lone cut has just ended
	lone, spent  bool
}

// oracleVotes counts the votes on an endpoint that count: all, and those of its own
// zone. Ups of checkers that lost their stream are left out.
type oracleVotes struct{ ups, downs, ownUps, ownDowns int }

func (o *oracle) count(e *oracleEndpoint) (v oracleVotes) {
	for name, p := range e.pairs {
		c, up, down := o.checkers[name], 0, 0
		switch worth := o.worth(e, name, p); {
		case worth == "up" && !c.lost:
			up = 1
		case worth == "down":
			down = 1
		}
		v.ups, v.downs = v.ups+up, v.downs+down
		if e.zone != "" && c.zone == e.zone {
			v.ownUps, v.ownDowns = v.ownUps+up, v.ownDowns+down
		}
	}
	return v
}

// cuts counts the doubted paths into a zone.
func (o *oracle) cuts(zone string) (n int) {
	for key, d := range o.paths {
		if key[1] == zone && d.doubted {
			n++
		}
	}
	return n
}

func (o *oracle) spent(zone string) bool { return o.divisions[zone] != nil && o.divisions[zone].spent }

// held tells whether a lone checker has held off the votes on a zone for long enough, or
// until just now.
func (o *oracle) held(zone string) bool {
	return o.spent(zone) || o.divisions[zone] != nil && o.cuts(zone) == 0 && o.divisions[zone].recent > o.now
}

// endCuts notes the lone cuts that have just ended.
func (o *oracle) endCuts(now time.Duration) {
	for zone, d := range o.divisions {
		if d.lone && o.cuts(zone) == 0 {
			*d = oracleDivision{began: d.began, spent: d.spent, recent: now + 3*o.longestRound()}
		}
	}
}

// corroborated tells whether a share of the votes on a zone is contradicted by others
// than the one checker that alone contradicts most.
func (o *oracle) corroborated(zone string, share float64) bool {
	_, paths := o.records()
	witnessed, most := map[string]int{}, 0
	for _, e := range o.endpoints {
		if v := o.count(e); e.zone != zone || v.ups != 1 || v.ownUps != 1 {
			continue
		}
		witness, downs := "", 0
		for name, p := range e.pairs {
			c := o.checkers[name]
			if o.worth(e, name, p) == "up" && !c.lost {
				witness = name
			}
			if !p.counts() || c.state != "heard" || c.trust == aggregate.Distrusted || !p.status.Down() || len(waysFrom(e, c)) == 0 || p.code >= 400 {
				continue
			}
			if byPeers, byZone := o.contradicted(e, name); byPeers || byZone {
				downs++
			}
		}
		witnessed[witness] += downs
		most = max(most, witnessed[witness])
	}
	for key, r := range paths {
		if key[1] != zone || key[0] != "elsewhere" && !o.paths[key].doubted && r.share() < o.doubt.PathShare {
			continue
		}
		if others := r.contradicted - most; others >= 2 && float64(others) >= share*float64(r.votes-most) && r.bySeveral(share) {
			return true
		}
	}
	return false
}

func (o *oracle) mayCut(zone string) bool { return !o.spent(zone) }

// beginCut notes that a path into a zone is about to be cut.
func (o *oracle) beginCut(now time.Duration, zone string) {
	d := o.divisions[zone]
	if d == nil {
		d = &oracleDivision{}
		o.divisions[zone] = d
	}
	if o.cuts(zone) == 0 {
		longest := time.Duration(0)
		for _, e := range o.endpoints {
			if e.zone == zone {
				longest = max(longest, o.waited(e))
			}
		}
		d.began = now - max(0, longest-max(o.staleness, o.longestRound()))
		o.setLone(now, d, true)
	}
}

func (o *oracle) longestRound() time.Duration {
	round := time.Millisecond
	for _, e := range o.endpoints {
		round = max(round, e.timing.Interval, e.timing.ReportInterval)
	}
	return round
}

func (o *oracle) setLone(now time.Duration, d *oracleDivision, lone bool) {
	d.lone, d.until, d.firm = lone, 0, 0
	if !lone {
		return
	}
	round := o.longestRound()
	lasts := max(4*round, 9*round-max(o.staleness, round))
	d.until = max(d.began+lasts, now+(lasts/2).Truncate(time.Millisecond))
}

// endLone believes the paths again that a lone checker has cut for long enough.
func (o *oracle) endLone(now time.Duration) {
	for zone, d := range o.divisions {
		lasts := false // some doubt lasts until then
		for key, path := range o.paths {
			lasts = lasts || key[1] == zone && path.doubted && (path.release == 0 || path.release >= d.until)
		}
		if !d.lone || now < d.until || !lasts {
			continue
		}
		d.spent = true
		for key, path := range o.paths {
			if key[1] == zone {
				*path = oracleDoubt{}
			}
		}
	}
}

// divide reviews the divisions, and tells whether more follows.
func (o *oracle) divide(now time.Duration) (more bool) {
	_, paths := o.records()
	for zone, d := range o.divisions {
		cuts, needs := o.cuts(zone), o.doubt.PathShare
		if cuts > 0 && !d.lone {
			needs /= 2
		}
		corroborated := o.corroborated(zone, needs)
		switch {
		case !d.lone && !d.spent:
		case !corroborated:
			d.firm = 0
		case d.firm == 0:
			d.firm = now + 3*o.longestRound()
		}
		firm := (d.lone || d.spent) && d.firm != 0 && d.firm <= now
		if cuts > 0 && (d.lone && firm || !d.lone && !corroborated) {
			o.setLone(now, d, !d.lone)
			more = true
		}
		r := paths[[2]string{"elsewhere", zone}]
		if d.spent && (firm || r == nil || r.share() < o.doubt.Release) {
			d.spent, more = false, true
		}
	}
	return o.refresh() || more
}

// refresh finds the endpoints whose votes count although a path is cut.
func (o *oracle) refresh() (changed bool) {
	for _, e := range o.endpoints {
		d, v := o.divisions[e.zone], o.count(e)
		over := false
		for name := range e.pairs {
			over = over || o.cut(e, o.checkers[name])
		}
		before := e.countsCut
		e.countsCut = over && (v.ownUps > 0 && v.ownUps == v.ownDowns || d.lone && e.status.Down() && v.ownUps < 2)
		changed = changed || e.countsCut != before
	}
	return changed
}

// divide lets the checkers elsewhere say that they get no answer from a zone, while some
// checkers in the zone say up, and some that say so change their minds.
func (w *twins) divide(t *rapid.T) {
	zone := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone")
	for id := range health.EndpointID(endpoints) {
		e := w.oracle.endpoints[id]
		if e == nil || e.zone != zone {
			continue
		}
		for i := range pool {
			if name := fmt.Sprint("c", i); e.pairs[name] == nil && rapid.Bool().Draw(t, "seat") {
				w.aggregator.Assign(w.wall(), id, name)
				w.oracle.assign(w.now, id, name)
			}
		}
	}
	ups := map[string]bool{}
	say := func(all bool) {
		for i := range pool {
			name := fmt.Sprint("c", i)
			var votes []health.Vote
			for id := range health.EndpointID(endpoints) {
				vote := health.Vote{Endpoint: id, Status: health.Healthy}
				if e := w.oracle.endpoints[id]; e == nil || e.zone == zone && !all && !ups[name] {
					vote.Status = health.Timeout
				}
				votes = append(votes, vote)
			}
			w.compare(w.aggregator.Report(w.wall(), name, votes), w.oracle.report(w.now, name, votes))
		}
	}
	say(true)
	for range rapid.IntRange(1, 2).Draw(t, "times") {
		for i := range pool {
			name := fmt.Sprint("c", i)
			ups[name] = w.oracle.checkers[name] != nil && w.oracle.checkers[name].zone == zone && rapid.Bool().Draw(t, "up")
		}
		for range rapid.IntRange(1, 5).Draw(t, "rounds") {
			say(false)
			w.now += time.Duration(rapid.IntRange(200, 2000).Draw(t, "ms")) * time.Millisecond
		}
	}
}
