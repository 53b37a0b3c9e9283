package fleet

import "time"

// lateFounders had seats when the first founders were established, and had yet to vote. They keep
// these for as long as a probation lasts, also where they connect anew or hdsd restarts: a fleet
// whose first start is just over would otherwise lose what they had to others.
type lateFounders struct {
	fleet   *Fleet
	founded time.Time // when founders were last established, or the first one was back after a restart
	all     map[string]Established
}

// restore takes up those of before a restart that still have seats.
func (l *lateFounders) restore(id string, e Established) {
	l.all[id] = e
	if l.fleet.checkers[id] == nil {
		l.forget(id)
	}
}

// isOver reports whether their time is over.
func (l *lateFounders) isOver(now time.Time, lasts time.Duration) bool {
	return now.Sub(l.founded) >= lasts
}

// has reports whether a checker that connects is one whose time is not over. It forgets one whose
// time is.
func (l *lateFounders) has(now time.Time, known *checker, lasts time.Duration) bool {
	if l.founded.IsZero() {
		l.founded = now
	}
	if l.isOver(now, lasts) {
		l.forget(known.ID)
	}
	e, ok := l.all[known.ID]
	_, seated := l.fleet.seats[known.ID]
	return ok && seated && e.Identity == known.Identity
}

// keep keeps and stores that a founder is late.
func (l *lateFounders) keep(now time.Time, known *checker) {
	e := Established{Identity: known.Identity, Seen: now, Founder: true}
	l.all[known.ID] = e
	l.fleet.out.setEstablished(known.ID, &e)
}

// forget forgets one that is on probation or gone.
func (l *lateFounders) forget(id string) {
	if _, is := l.all[id]; is {
		delete(l.all, id)
		l.fleet.out.setEstablished(id, nil)
	}
}
