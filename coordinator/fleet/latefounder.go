package fleet

import "time"

// Late founders had seats when the first founders were established, and had yet to vote. They keep
// these for as long as a probation lasts, also where they connect anew or hdsd restarts: a fleet
// whose first start is just over would otherwise lose what they had to others.

// isLate reports whether a checker that connects is a late founder whose time is not over.
func (p *Probation) isLate(now time.Time, known *checker) bool {
	if p.founded.IsZero() { // before the restart
		p.founded = now
	}
	if now.Sub(p.founded) >= p.lasts {
		p.forgetLate(known.ID)
	}
	e, ok := p.late[known.ID]
	_, seated := p.fleet.seats[known.ID]
	return ok && seated && e.Identity == known.Identity
}

// keepLate keeps and stores that a founder is late.
func (p *Probation) keepLate(now time.Time, known *checker) {
	e := Established{Identity: known.Identity, Seen: now, Founder: true}
	p.late[known.ID] = e
	p.store(known.ID, &e)
}

// forgetLate forgets a late founder that is demoted or gone.
func (p *Probation) forgetLate(id string) {
	if _, is := p.late[id]; is {
		delete(p.late, id)
		p.store(id, nil)
	}
}
