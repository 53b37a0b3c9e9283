package eds

import (
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// polling is one list of names that a client asks for again and again.
type polling struct {
	key    pollKey
	by     *poller
	size   int
	last   time.Time
	state  state
	held   string // the version that the client says it has
	choice string // of the variant, where none is asked for

	given    *given    // what it was given last
	at       time.Time // when; zero where it had that before
	accepted *given    // what it has by its own word; nil: nothing, or not known
	lastAck  time.Time
	lastErr  string
	failure  *pollFailure // its latest refusal, until it accepts something

	took    time.Time // when it accepted that
	looked  time.Time // when it was last looked for what it has yet to ask for
	unasked int       // of clusters: assignments that it has not asked for
}

type pollFailure struct {
	given *given
	text  string
	at    time.Time
}

// take takes in what a client says by its poll, and what it is given.
func (p *polling) take(l *pollers, m *discoveryv3.DiscoveryRequest, f *fetched, now time.Time) {
	p.last, p.held, p.choice = now, brief(m.GetVersionInfo()), f.choice
	if p.accepted != nil && p.accepted.version != p.held {
		l.release(p.accepted)
		p.accepted = nil
	}
	if e := m.GetErrorDetail(); e != nil {
		p.refuse(l, brief(e.GetMessage()), m.GetResponseNonce(), now)
	} else if p.given != nil && p.given.version == p.held {
		p.accept(l, p.given, now)
	}
	given := l.giving(f)
	switch {
	case m.GetErrorDetail() == nil && given.version == p.held: // it has it from elsewhere, or from before
		p.hand(l, given)
		p.accept(l, given, now)
	case given != p.given || p.state == accepted: // what it had, it has no more
		p.hand(l, given)
		p.state, p.at = pending, now
	default:
		l.release(given)
	}
}

// hand notes what the client is given.
func (p *polling) hand(l *pollers, g *given) {
	if p.given != nil {
		l.release(p.given)
	}
	if p.given != g {
		p.at = time.Time{}
	}
	p.given = g
}

func (p *polling) accept(l *pollers, g *given, now time.Time) {
	if p.state != accepted {
		p.lastAck = now
	}
	p.state = accepted
	if p.accepted == nil {
		p.accepted, p.took = l.keep(g), now
	}
	p.setFailure(l, nil)
}

// refuse is for an error_detail, which is about what was given last unless its
// nonce says otherwise.
func (p *polling) refuse(l *pollers, text, nonce string, now time.Time) {
	p.lastErr = text
	if p.given == nil || nonce != "" && nonce != p.given.version {
		return
	}
	p.state = refused
	p.setFailure(l, &pollFailure{given: l.keep(p.given), text: text, at: now})
}

func (p *polling) setFailure(l *pollers, f *pollFailure) {
	if p.failure != nil {
		l.release(p.failure.given)
	}
	p.failure = f
}

// drop gives back what the poll holds.
func (p *polling) drop(l *pollers) {
	for _, g := range []*given{p.given, p.accepted} {
		if g != nil {
			l.release(g)
		}
	}
	p.setFailure(l, nil)
}

// givenList tells lists of names apart.
type givenList struct {
	table *table
	all   bool   // everything is asked for
	names uint64 // hash of the names
}

type givenKey struct {
	list    givenList
	version string
}

// given is an answer, without its content.
type given struct {
	givenKey
	keys     []string // sorted: the names that were asked for; where all were, those that there were
	versions []uint64 // of each; 0: there was none
	refs     int
}

func (g *given) cost() int {
	return costOfPoll + 24*len(g.keys) + lengthOf(g.keys)
}

// of gives the version of a resource, 0 where it was not given, and tells whether
// the answer was about it.
func (g *given) of(key string) (version uint64, asked bool) {
	if g == nil {
		return 0, false
	}
	i, asked := slices.BinarySearch(g.keys, key)
	if asked {
		version = g.versions[i]
	}
	return version, asked
}

// giving gives what is remembered of an answer.
func (l *pollers) giving(f *fetched) *given {
	key := givenKey{f.list(), f.version}
	if g := l.given[key]; g != nil {
		return l.keep(g)
	}
	g := &given{givenKey: key, keys: f.asked}
	if key.list.all {
		g.keys = make([]string, len(f.slots))
		for i, slot := range f.slots {
			g.keys[i] = slot.name
		}
	}
	g.versions = make([]uint64, len(g.keys))
	found := 0
	for i, key := range g.keys {
		if found < len(f.slots) && f.slots[found].key(f.byLocator(found)) == key {
			g.versions[i] = f.frames[found].version
			found++
		}
	}
	l.given[key] = g
	l.room -= g.cost()
	return l.keep(g)
}

func (l *pollers) keep(g *given) *given {
	g.refs++
	return g
}

func (l *pollers) release(g *given) {
	if g.refs--; g.refs == 0 {
		delete(l.given, g.givenKey)
		l.room += g.cost()
	}
}
