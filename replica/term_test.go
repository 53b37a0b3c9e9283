package replica

import (
	"maps"
	"slices"
	"testing"
	"time"

	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/log"
	"hdsd/log/batch"
	"hdsd/machine"
)

// leading returns the process that leads.
func (l *lab) leading() *process {
	l.Helper()
	for _, p := range l.running() {
		if p.replica.Machine() != nil {
			return p
		}
	}
	l.Fatal("nobody leads")
	return nil
}

// outage returns reports of all other replicas that everything is down, by the specifiers that the checkers follow.
func (l *lab) outage(leader *process) map[string]Report {
	reports := map[string]Report{}
	for id, p := range l.processes {
		if p == leader {
			continue
		}
		report := Report{Term: leader.replica.term.id}
		for checker, s := range p.replica.roster.sessions {
			session := Session{Checker: checker, Number: s.number, Connected: true, Followed: s.followed.serial, Assigned: s.followed.serial, Heard: true}
			for hash := range s.votes {
				session.Votes = append(session.Votes, Vote{hash, health.Unhealthy, 503})
			}
			report.Sessions = append(report.Sessions, session)
		}
		reports[id] = report
	}
	return reports
}

// TestReportsOfOtherTermsAndLinksDoNotCount covers votes that come to the wrong leader, or too late.
func TestReportsOfOtherTermsAndLinksDoNotCount(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*process, *Report, *Received)
		counts bool
	}{
		"this term":          {func(*process, *Report, *Received) {}, true},
		"an earlier epoch":   {func(_ *process, m *Report, _ *Received) { m.Term.Epoch-- }, false},
		"an earlier round":   {func(_ *process, m *Report, _ *Received) { m.Term.Round-- }, false},
		"an earlier link":    {func(_ *process, _ *Report, e *Received) { e.Link-- }, false},
		"an earlier session": {func(_ *process, m *Report, _ *Received) { unfollow(m, func(s *Session) { s.Number--; s.Node = nil }) }, false},
		"no specifier":       {func(_ *process, m *Report, _ *Received) { unfollow(m, func(s *Session) { s.Followed = 0 }) }, false},
		"an endpoint that came back": {func(leader *process, m *Report, _ *Received) {
			for i := range m.Sessions {
				for _, v := range m.Sessions[i].Votes {
					leader.replica.term.holdings[m.Sessions[i].Checker].begun[v.Endpoint] = m.Sessions[i].Followed + 1
				}
			}
		}, false},
		"another replica":     {func(_ *process, _ *Report, e *Received) { e.Replica = "r9" }, false},
		"a rival's own votes": {func(_ *process, m *Report, _ *Received) { unfollow(m, func(s *Session) { s.Checker += "x" }) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newFleet(t, 2)
			leader := l.leading()
			for id, report := range l.outage(leader) {
				e := Received{Replica: id, Link: leader.replica.links[id].number}
				test.change(leader, &report, &e)
				e.Message = report
				leader.step(e)
			}
			l.pass(100 * time.Millisecond)
			if counts := slices.Contains(slices.Collect(maps.Values(l.log.chain)), health.Unhealthy); counts != test.counts {
				t.Errorf("the votes count: %t", counts)
			}
		})
	}
}

func unfollow(m *Report, change func(*Session)) {
	for i := range m.Sessions {
		change(&m.Sessions[i])
	}
}

// TestDirectionsOfOtherTermsAreIgnored covers a leader that does not know yet that another one leads.
func TestDirectionsOfOtherTermsAreIgnored(t *testing.T) {
	l := newFleet(t, 2)
	leader := l.leading()
	for id, p := range l.processes {
		if p == leader {
			continue
		}
		for name, test := range map[string]struct {
			term  Term
			from  string
			moves int
		}{
			"an earlier epoch": {Term{leader.replica.term.id.Epoch - 1, 1}, leader.id, 0},
			"a later round":    {Term{leader.replica.term.id.Epoch, 2}, leader.id, 0},
			"no leader":        {leader.replica.term.id, map[string]string{"r1": "r2", "r2": "r3", "r3": "r1"}[leader.id], 0},
			"the leader":       {leader.replica.term.id, leader.id, 1},
		} {
			if test.from == id {
				continue
			}
			before := p.moves
			for checker, s := range p.replica.roster.sessions {
				d := Directions{Term: test.term, Assignments: []Assignment{{Checker: checker, Session: s.number, Serial: 900, Specifier: &specifier.Specifier{}}}}
				p.step(Received{test.from, p.replica.links[test.from].number, d})
				break
			}
			if p.moves-before != test.moves {
				t.Errorf("%s: %d specifiers, want %d", name, p.moves-before, test.moves)
			}
		}
	}
}

// TestDirectionsOfADeposedLeader covers a replica that sees in the log that another one leads.
func TestDirectionsOfADeposedLeader(t *testing.T) {
	l := newFleet(t, 2)
	leader := l.leading()
	term := leader.replica.term.id
	for _, p := range l.running() {
		if p == leader {
			continue
		}
		encoded, err := batch.Encode([]*log.Entry{{Clusters: []string{"new"}}})
		if err != nil {
			t.Fatal(err)
		}
		p.step(Read{p.replica.position + 1, term.Epoch + 1, 0, batch.Frames(encoded, 1000)[0]})
		before := p.moves
		for checker, s := range p.replica.roster.sessions {
			d := Directions{Term: term, Assignments: []Assignment{{Checker: checker, Session: s.number, Serial: 900, Specifier: &specifier.Specifier{}}}}
			p.step(Received{leader.id, p.replica.links[leader.id].number, d})
		}
		if p.moves != before {
			t.Errorf("%s takes specifiers of a former leader", p.id)
		}
	}
}

// TestLostSpecifiersComeAgain covers specifiers that are lost with a link, which opens anew at once.
func TestLostSpecifiersComeAgain(t *testing.T) {
	l := newFleet(t, 2)
	leader := l.leading()
	l.drops = func(m Message) bool { _, ok := m.(Directions); return ok }
	l.clusters[2] = prepare(web("web", "/new", 12, 4))[0]
	for _, p := range l.running() {
		p.deliver()
	}
	l.pass(10 * reportInterval) // a canary first
	path := func(k *simChecker) string {
		for _, part := range k.spec.Clusters {
			if part.Head.GetClusterName() == "web" {
				return part.Head.GetHealthChecks()[0].GetHttpHealthCheck().GetPath()
			}
		}
		return ""
	}
	for _, k := range l.checkers {
		if path(k) == "/new" != (k.process == leader && path(k) != "") {
			t.Fatalf("%s of %s checks %q", k.ID, k.process.id, path(k))
		}
	}
	l.drops, l.prompt = nil, true
	for _, p := range l.running() {
		if p != leader {
			leader.step(LinkClosed{p.id, leader.replica.links[p.id].number})
			p.step(LinkClosed{leader.id, p.replica.links[leader.id].number})
			l.links[linkKey(p.id, leader.id)].open = false
			l.connectLink(p.id, leader.id)
		}
	}
	l.pass(3 * reportInterval)
	for _, k := range l.checkers {
		if path(k) == "/" {
			t.Errorf("%s of %s lacks its specifier", k.ID, k.process.id)
		}
	}
	if leader.losses > 0 {
		t.Errorf("%d checkers are lost", leader.losses)
	}
}

// TestMalformedMessagesDoNothing covers messages of a replica that is broken.
func TestMalformedMessagesDoNothing(t *testing.T) {
	l := newFleet(t, 2)
	leader := l.leading()
	id := leader.replica.term.id
	for replica, p := range l.processes {
		if p == leader {
			continue
		}
		var directions Directions
		for checker, s := range p.replica.roster.sessions {
			whole := s.followed.specifier
			for _, a := range []Assignment{
				{}, {Specifier: whole}, {Specifier: whole, Endpoints: s.followed.endpoints[1:]},
				{Specifier: &specifier.Specifier{}, Endpoints: s.followed.endpoints},
				{Specifier: &specifier.Specifier{Clusters: whole.Clusters}, Endpoints: s.followed.endpoints},
			} {
				a.Checker, a.Session, a.Serial = checker, s.number, 900
				directions.Assignments = append(directions.Assignments, a)
			}
		}
		directions.Term = id
		before := p.moves
		p.step(Received{leader.id, p.replica.links[leader.id].number, directions})
		if p.moves != before {
			t.Errorf("%s: %d specifiers", replica, p.moves-before)
		}
		report := l.outage(leader)[replica]
		for i := range report.Sessions {
			for j := range report.Sessions[i].Votes {
				report.Sessions[i].Votes[j].Status = 200
			}
		}
		report.Orders = []Order{{}, {ID: log.OrderID{Process: 5, Number: 1}}}
		leader.step(Received{replica, leader.replica.links[replica].number, report})
	}
	l.pass(5 * reportInterval)
	l.settled("at the end")
}

// TestSpecifiersWaitForTheLog covers seats that move while the log is away: no checker is told before the next
// leader would know of it.
func TestSpecifiersWaitForTheLog(t *testing.T) {
	l := newFleet(t, 2)
	moves := func() (count int) {
		for _, p := range l.running() {
			count += p.moves
		}
		return count
	}
	before := moves()
	l.log.away = true
	for _, checker := range []string{"c0", "c3"} {
		p := l.checkers[checker].process
		l.checkers[checker].process = nil // for ever
		p.step(Local{machine.Disconnected{Checker: checker}})
	}
	l.pass(grace + 10*reportInterval)
	if count := moves() - before; count > 0 {
		t.Errorf("%d specifiers by a plan that is not in the log", count)
	}
	l.log.away = false
	l.pass(5 * reportInterval)
	if moves() == before {
		t.Error("no seats move")
	}
}

// TestStuckCommitsBeginANewTerm covers a log that is away for so long that too many entries wait: the leader
// forgets them, and begins anew with the state of the log when that is back.
func TestStuckCommitsBeginANewTerm(t *testing.T) {
	for seed := range uint64(12) {
		l := newFleet(t, seed*4+3)
		leader := l.leading()
		term := leader.replica.term.id
		l.log.away = true
		for _, address := range l.addresses() {
			l.turn(address)
			l.pass(l.between(0, reportInterval))
		}
		leader.order(&machine.Unfreeze{Author: "ann"})
		if l.overflows != 1 || leader.replica.term != nil || len(leader.replica.committer.waiting) > 0 {
			t.Fatalf("seed %d: %d terms end, %d steps wait", seed, l.overflows, len(leader.replica.committer.waiting))
		}
		l.turn("10.0.0.3:80") // back
		l.pass(l.between(0, 20*reportInterval))
		l.repair()
		l.pass(20 * reportInterval)
		l.settled("at the end")
		l.explained()
		l.checkOrders()
		if next := leader.replica.term; next == nil || next.id != (Term{term.Epoch, term.Round + 1}) {
			t.Errorf("seed %d: after %v comes %v", seed, term, next)
		}
	}
}

// TestTwoSessionsOfOneChecker covers a checker that two replicas have: the earlier session has it as long as it
// reports. Then the later one has it, and the end of the earlier one changes nothing.
func TestTwoSessionsOfOneChecker(t *testing.T) {
	l := newFleet(t, 2)
	leader, k := l.leading(), l.checkers["c0"]
	first, second := l.processes["r1"], l.processes["r2"]
	want := func(when string, joined int) {
		t.Helper()
		l.pass(6 * reportInterval)
		if leader.joined != joined || leader.losses != 0 {
			t.Errorf("%s: %d sessions, want %d; %d lost", when, leader.joined, joined, leader.losses)
		}
	}
	before := leader.joined
	second.step(Local{machine.Connected{Checker: k.Checker}})
	want("both report", before)
	second.step(Local{machine.Disconnected{Checker: k.ID}})
	want("the later one ends", before)

	k.process = nil // the stream is half open
	k.connect("r2")
	want("the earlier one is silent", before+1)
	first.step(Local{machine.Disconnected{Checker: k.ID}})
	want("the earlier one ends", before+1)
	for _, address := range l.addresses() {
		l.turn(address)
	}
	want("everything fails", before+1)
	l.settled("at the end")

	first.step(Local{machine.Connected{Checker: k.Checker}})
	l.pass(reportInterval)
	second.step(Local{machine.Disconnected{Checker: k.ID}})
	l.pass(reportInterval)
	if leader.joined != before+2 || leader.losses != 1 {
		t.Errorf("the later one ends first: %d sessions, %d lost", leader.joined, leader.losses)
	}
}

// TestVotesOfBeforeTheReturnOfAnEndpoint covers an endpoint that leaves and comes back between two specifiers of
// its checker: earlier votes do not count, and the checker reports it again.
func TestVotesOfBeforeTheReturnOfAnEndpoint(t *testing.T) {
	h := &holding{}
	h.forgetSession()
	h.prepare(&specifier.Specifier{Serial: 3, Order: []health.EndpointID{7, 8}}, []health.Hash{70, 80}, "c")
	if len(h.begun) != 0 || h.latest.Specifier.Retell {
		t.Error("the first specifier of a term restarts votes")
	}
	h.prepare(&specifier.Specifier{Serial: 5, Order: []health.EndpointID{9, 8, 4}}, []health.Hash{70, 80, 40}, "c")
	if h.begun[70] != 5 || h.begun[40] != 5 || h.begun[80] != 0 || !h.latest.Specifier.Retell {
		t.Errorf("%v, retell %t", h.begun, h.latest.Specifier.Retell)
	}
	if h.follow(3) == nil || h.begun[70] != 5 || h.follow(3) != nil || h.follow(4) != nil {
		t.Error("following the first one")
	}
	if h.follow(5) == nil || len(h.begun) != 0 || len(h.unfollowed) != 0 {
		t.Error("following the second one")
	}
}

// TestOrdersAreRefusedOnce covers a refusal that is lost with a link: the order comes again, and is refused again.
func TestOrdersAreRefusedOnce(t *testing.T) {
	l := newFleet(t, 2)
	leader := l.leading()
	term := leader.replica.term
	p := term.peers["r1"]
	ask := func(number uint64, e machine.Event) (refused int) {
		term.order(l.now, p, &Order{ID: log.OrderID{Process: 9, Number: number}, Event: e})
		refused, p.refusals = len(p.refusals), nil
		return refused
	}
	for range 2 {
		if ask(1, machine.Begun{}) != 1 {
			t.Error("an order that is none is not refused")
		}
	}
	if ask(2, &machine.Unfreeze{}) != 0 || len(term.entries) != 1 || ask(2, &machine.Unfreeze{}) != 0 || len(term.entries) != 1 {
		t.Errorf("%d entries of one order that changes nothing", len(term.entries))
	}
	for i := range uint64(2 * maxOrders) {
		ask(10+i, machine.Begun{})
	}
	if kept := len(term.orders[9].refused); kept != maxOrders {
		t.Errorf("%d refusals are kept", kept)
	}
}
