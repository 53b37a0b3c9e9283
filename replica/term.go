package replica

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/replica/clusters"
)

// term is what a replica has while it leads: the Machine, and where its checkers are.
type term struct {
	id      Term
	head    uint64 // of the log, at the beginning
	started time.Time
	opened  bool // the Machine has begun
	begun   bool // the time to settle has begun
	report  time.Duration
	machine *machine.Machine
	union   *clusters.Union // the clusters of all replicas
	early   []earlyReport   // reports before the Machine has begun
	parts   int             // of early: sessions, votes and orders
	untold  map[string]bool // replicas of a release that tells no clusters

	peers     map[string]*peer    // replicas with a full report, this one too
	holdings  map[string]*holding // by checker
	contested map[string]bool     // checkers whose holding has rivals
	orders    map[uint64]*taken   // by process

	entries  []*log.Entry // of the current step of the machine
	prepared []string     // checkers with a new specifier of the current step
	yield    func(Effect) // of the current step of the replica
}

// peer is a replica whose reports count.
type peer struct {
	heard    time.Time
	closed   time.Time       // when its link ended; zero: it has one
	due      map[string]bool // checkers with a specifier to send
	looked   uint64          // number of steps in the log at the latest look at due
	resend   map[string]bool // checkers whose state the leader needs in full
	refusals []Refusal
}

// earlyReport is a report without its clusters, which the Union has.
type earlyReport struct {
	replica string
	report  *Report
}

// maxEarly bounds the parts of early reports: those of a million endpoints with three checkers each, several times.
const maxEarly = 1 << 24

// keepEarly keeps a report for the Machine. It returns false if there are too many: those of the replica are forgotten.
func (t *term) keepEarly(from string, m *Report) bool {
	parts := partsOf(m)
	if t.parts+parts > maxEarly {
		t.forgetEarly(from)
		return false
	}
	t.early, t.parts = append(t.early, earlyReport{from, &Report{Term: m.Term, Full: m.Full, Sessions: m.Sessions, Orders: m.Orders}}), t.parts+parts
	return true
}

// forgetEarly forgets the early reports of a replica.
func (t *term) forgetEarly(replica string) {
	t.early = slices.DeleteFunc(t.early, func(m earlyReport) bool {
		if m.replica == replica {
			t.parts -= partsOf(m.report)
		}
		return m.replica == replica
	})
}

// partsOf counts the parts of a report, and the report.
func partsOf(m *Report) int {
	parts := 1 + len(m.Sessions) + len(m.Orders)
	for i := range m.Sessions {
		parts += len(m.Sessions[i].Votes)
	}
	return parts
}

// taken tells the orders of a process that the leader has had.
type taken struct {
	latest  uint64    // number
	refused []Refusal // the latest maxOrders
}

// newTerm returns a term with a new Machine.
func newTerm(now time.Time, id Term, head uint64, timing machine.Timing, union *clusters.Union, yield func(Effect)) *term {
	return &term{
		id: id, head: head, started: now, report: timing.Report, machine: machine.New(timing), union: union, untold: map[string]bool{}, yield: yield,
		peers: map[string]*peer{}, holdings: map[string]*holding{}, contested: map[string]bool{}, orders: map[uint64]*taken{},
	}
}

// knows reports whether a replica has told all of its clusters.
func (t *term) knows(replica string) bool { return t.untold[replica] || t.union.Knows(replica) }

// begin begins the time to settle.
func (t *term) begin(now time.Time) {
	t.begun = true
	t.step(now, machine.Begun{})
}

// step lets the machine handle an event.
func (t *term) step(now time.Time, e machine.Event) {
	t.machine.Step(now, e, func(e machine.Effect) {
		switch e := e.(type) {
		case machine.Published, machine.ClustersChanged, machine.ForgetDue: // the Follower has them
		case machine.Logged:
			t.entries = append(t.entries, e.Entry)
		case machine.SpecifierMade:
			if h := t.holdings[e.Checker]; h != nil {
				h.prepare(e.Specifier, t.hashes(e.Specifier.Order), e.Checker)
				t.prepared = append(t.prepared, e.Checker)
			}
		default:
			t.yield(Decided{e})
		}
	})
}

// hashes returns the hashes of endpoints of the machine.
func (t *term) hashes(ids []health.EndpointID) []health.Hash {
	hashes := make([]health.Hash, len(ids))
	for i, id := range ids {
		if k, index := t.machine.Rulings.At(id); k != nil && index != catalog.None {
			hashes[i] = k.Hashes[index]
		}
	}
	return hashes
}

// finish ends a step: its entries wait for a commit, and its specifiers for its entries. So a checker never
// checks what a next leader does not know of. It returns false if too many entries wait.
func (t *term) finish(now time.Time, c *committer) bool {
	ok := c.add(now, t.entries)
	t.entries = nil
	for _, checker := range t.prepared {
		if h := t.holdings[checker]; h != nil && h.latest != nil {
			h.gate = c.added
			t.peers[h.replica].add(checker)
		}
	}
	t.prepared = nil
	return ok
}

// add adds a checker with a specifier to send.
func (p *peer) add(checker string) {
	if p != nil {
		p.due[checker], p.looked = true, unlooked
	}
}

// ask asks a replica for the state of a checker.
func (p *peer) ask(checker string) {
	if p != nil {
		p.resend[checker] = true
	}
}

// unlooked is the value of peer.looked for a new specifier.
const unlooked = math.MaxUint64

// receive applies a report. It returns false if a full one is needed first.
func (t *term) receive(now time.Time, from string, m *Report) bool {
	p := t.peers[from]
	if m.Full && p == nil {
		p = &peer{due: map[string]bool{}, resend: map[string]bool{}}
		t.peers[from] = p
	}
	if p == nil || !m.Full && !p.closed.IsZero() {
		return false
	}
	p.heard, p.closed = now, time.Time{}
	if m.Full {
		clear(p.resend)
		t.dropAbsent(now, from, m.Sessions)
	}
	for i := range m.Sessions {
		t.session(now, from, &m.Sessions[i])
		if s := &m.Sessions[i]; m.Full {
			t.sendAgain(from, s)
		}
	}
	for i := range m.Orders {
		t.order(now, p, &m.Orders[i])
	}
	return true
}

// dropAbsent drops the checkers that a full report of their replica lacks.
func (t *term) dropAbsent(now time.Time, from string, present []Session) {
	for _, checker := range t.heldBy(from) {
		_, found := slices.BinarySearchFunc(present, checker, func(s Session, id string) int { return cmp.Compare(s.Checker, id) })
		if !found {
			t.lose(now, checker)
		}
	}
	t.withdraw(from)
}

// withdraw forgets the sessions of a replica that are rivals.
func (t *term) withdraw(replica string) {
	for checker := range t.contested {
		t.setRival(checker, replica, time.Time{})
	}
}

// setRival notes since when a replica has a session that is a rival; zero: it has none.
func (t *term) setRival(checker, replica string, since time.Time) {
	h := t.holdings[checker]
	if since.IsZero() {
		delete(h.rivals, replica)
	} else {
		h.rivals[replica] = since
	}
	if t.contested[checker] = true; len(h.rivals) == 0 {
		delete(t.contested, checker)
	}
}

// heldBy returns the checkers of a replica, sorted.
func (t *term) heldBy(replica string) (checkers []string) {
	for checker, h := range t.holdings {
		if h.replica == replica {
			checkers = append(checkers, checker)
		}
	}
	slices.Sort(checkers)
	return checkers
}

// sendAgain directs a replica to assign a specifier again that was lost with a link.
func (t *term) sendAgain(from string, s *Session) {
	if h := t.holdings[s.Checker]; h != nil && h.replica == from && h.session == s.Number && h.latest != nil && h.latest.Serial > s.Assigned {
		t.peers[from].add(s.Checker)
	}
}

// tick does the due work.
func (t *term) tick(now, received time.Time) {
	for _, replica := range slices.Sorted(maps.Keys(t.peers)) {
		switch p := t.peers[replica]; {
		case !p.closed.IsZero() && now.Sub(p.closed) >= t.report, now.Sub(p.heard) >= t.silence():
			delete(t.peers, replica)
			t.union.Lose(now, replica)
			t.withdraw(replica)
			for _, checker := range t.heldBy(replica) {
				t.lose(now, checker)
			}
		case received.IsZero() || p.heard.Before(received):
			received = p.heard
		}
	}
	for _, checker := range slices.Sorted(maps.Keys(t.contested)) {
		if h := t.holdings[checker]; now.Sub(h.heard) >= t.silence() {
			t.giveToRival(now, checker, h)
		}
	}
	t.step(now, machine.Tick{ReceivedUntil: received})
}

// silence returns the time after which a replica, or a session, is silent.
func (t *term) silence() time.Duration { return max(silentReports*t.report, minSilence) }

// closeLink notes the end of a link.
func (t *term) closeLink(now time.Time, replica string) {
	if !t.opened {
		t.union.Lose(now, replica)
		t.forgetEarly(replica)
	}
	if p := t.peers[replica]; p != nil && p.closed.IsZero() {
		p.closed = now
	}
}

// directions returns the directions for a replica whose entries are in the log; nil if there are none.
func (t *term) directions(replica string, done uint64) *Directions {
	p := t.peers[replica]
	if p == nil || !p.closed.IsZero() || p.looked == done && len(p.resend)+len(p.refusals) == 0 {
		return nil
	}
	d := &Directions{Term: t.id, Resend: slices.Sorted(maps.Keys(p.resend)), Refusals: p.refusals}
	clear(p.resend)
	p.refusals = nil
	p.looked = done
	size := 0
	for _, checker := range slices.Sorted(maps.Keys(p.due)) {
		h := t.holdings[checker]
		switch {
		case h == nil || h.replica != replica || h.latest == nil:
			delete(p.due, checker)
		case h.gate > done:
		case size >= maxDirections:
			p.looked = unlooked
		default:
			delete(p.due, checker)
			d.Assignments = append(d.Assignments, *h.latest)
			size += h.latest.Specifier.Size()
		}
	}
	if len(d.Assignments)+len(d.Resend)+len(d.Refusals) == 0 {
		return nil
	}
	return d
}

const (
	// silentReports is the number of report intervals after which a silent replica counts as gone, and a
	// silent session makes room for another of the same checker. The time is minSilence at least.
	silentReports = 3
	minSilence    = time.Second

	// maxDirections bounds the specifiers in a message, in bytes, but for the last one.
	maxDirections = 4 << 20
)
