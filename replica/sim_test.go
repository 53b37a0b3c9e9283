package replica

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
)

// newFleet starts three replicas with two checkers each.
func newFleet(t testing.TB, seed uint64, options ...func(*lab)) *lab {
	l := newLab(t, seed)
	for _, set := range options {
		set(l)
	}
	if seed%2 == 1 {
		l.payload = 200 // batches in several frames
	}
	if seed%4 == 3 {
		l.maximum = 3 // records that wait while the log is away
	}
	l.clusters = prepare(web("pay", "/", 1, 5), web("shop", "/", 6, 6), web("web", "/", 12, 4))
	for _, id := range []string{"r1", "r2", "r3"} {
		l.run(id)
	}
	for i := range 6 {
		l.addChecker(fmt.Sprintf("c%d", i), string(rune('a'+i%3)), []string{"r1", "r2", "r3"}[i%3])
	}
	l.pass(settle + 20*reportInterval)
	l.settled("at the beginning")
	return l
}

func (l *lab) addresses() (all []string) {
	for i := 1; i < 16; i++ {
		all = append(all, fmt.Sprintf("10.0.0.%d:80", i))
	}
	return all
}

// settled checks that all replicas publish the truth.
func (l *lab) settled(when string) {
	l.Helper()
	for _, p := range l.running() {
		if len(p.planes) != 15 {
			l.Errorf("%s: %s publishes %d endpoints", when, p.id, len(p.planes))
		}
		for key, course := range p.planes {
			if want := l.trueStatus(key.Address); course[len(course)-1].status != want {
				l.Errorf("%s: %s publishes %s as %v, which is %v", when, p.id, key.Address, course, want)
			}
		}
	}
}

// TestNoChangeOfLeaderMovesAnything covers that leaders come and go, links break, and no checker gets another
// specifier, and no endpoint another health; and that decisions go on afterwards.
func TestNoChangeOfLeaderMovesAnything(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newFleet(t, seed)
			moves := func() (count int) {
				for _, p := range l.running() {
					count += p.moves
				}
				return count
			}
			transitions := func() int { return len(l.log.chain) }
			before, promoted, entries := moves(), l.promoted, transitions()
			for range 12 {
				switch l.IntN(3) {
				case 0:
					l.log.endEpoch()
				case 1:
					if p := l.log.leader; p != nil {
						p.pause(l.between(time.Second, 5*time.Second))
					}
				case 2:
					keys := [][2]string{{"r1", "r2"}, {"r1", "r3"}, {"r2", "r3"}}
					l.cutLink(keys[l.IntN(3)])
				}
				l.pass(l.between(100*time.Millisecond, 6*time.Second))
				if l.IntN(2) == 0 {
					address := l.addresses()[l.IntN(15)]
					l.turn(address)
				}
			}
			l.pass(30 * reportInterval)
			l.settled("at the end")
			if after := moves(); after != before {
				t.Errorf("%d specifiers for checkers", after-before)
			}
			if l.promoted-promoted < 3 || transitions() != entries {
				t.Errorf("%d promotions", l.promoted-promoted)
			}
			l.explained()
		})
	}
}

// explained checks that the health that data planes got follows the truth: each change to a status comes after
// the truth has changed to it, and no change of the truth explains two.
func (l *lab) explained() {
	l.Helper()
	for _, p := range l.running() {
		for key, course := range p.planes {
			truth, i := append([]segment{{start, health.Healthy}}, l.truth[key.Address]...), 0
			for _, published := range course {
				if published.status == health.Unknown {
					continue // it has no verdict yet, or left
				}
				for i < len(truth) && truth[i].status != published.status {
					i++
				}
				if i == len(truth) || truth[i].begin.After(published.begin) {
					l.Errorf("%s publishes %s as %v, which is %v", p.id, key.Address, course, truth)
					break
				}
			}
		}
	}
}

// TestFleetsSurviveFaults covers random faults of everything.
func TestFleetsSurviveFaults(t *testing.T) {
	var promoted, carriedOut, refused int
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newFleet(t, seed)
			for range 40 {
				l.fault()
				l.pass(l.between(50*time.Millisecond, 4*time.Second))
			}
			l.setCluster(prepare(web("web", "/", 12, 4))[0])
			l.repair()
			l.pass(90 * reportInterval)
			l.settled("at the end")
			l.explained()
			l.checkOrders()
			l.checkHistory()
			promoted += l.promoted
			for _, o := range l.orders {
				if o.done && o.err == nil {
					carriedOut++
				} else if errors.Is(o.err, ErrLeaderChanged) {
					refused++
				}
			}
		})
	}
	if promoted < 300 || carriedOut < 300 || refused < 20 {
		t.Errorf("%d terms; %d orders carried out, %d refused by a change of leader", promoted, carriedOut, refused)
	}
}

// repair brings the log back.
func (l *lab) repair() {
	l.log.away = false
	for _, p := range l.running() {
		p.fetch()
	}
	l.schedule(0, l.log.elect)
}

// fault lets something fail, or an operator give an order.
func (l *lab) fault() {
	ids := slices.Sorted(maps.Keys(l.processes))
	checkers := slices.Sorted(maps.Keys(l.checkers))
	switch l.IntN(14) {
	case 0:
		if len(ids) > 1 {
			l.kill(ids[l.IntN(len(ids))])
		}
	case 1:
		if len(ids) > 1 && l.log.leader != nil && !l.log.leader.ended {
			l.kill(l.log.leader.id)
		}
	case 2:
		if len(ids) > 0 {
			l.processes[ids[l.IntN(len(ids))]].pause(l.between(100*time.Millisecond, 6*time.Second))
		}
	case 3:
		if p := l.log.leader; p != nil && !p.ended {
			p.pause(l.between(100*time.Millisecond, 6*time.Second))
		}
	case 4:
		l.log.endEpoch()
	case 5:
		l.log.away = true
		l.schedule(l.between(time.Second, 5*time.Second), func() {
			l.repair()
		})
	case 6:
		l.checkers[checkers[l.IntN(len(checkers))]].lose()
	case 7, 8:
		l.turn(l.addresses()[l.IntN(15)])
	case 9:
		if len(ids) > 1 {
			l.cutLink(linkKey(ids[0], ids[1+l.IntN(len(ids)-1)]))
		}
	case 10:
		l.setCluster(prepare(web("web", fmt.Sprint("/", l.IntN(2)), 12, 2+2*l.IntN(2)))[0])
	case 11:
		if len(ids) > 0 {
			p := l.processes[ids[l.IntN(len(ids))]]
			p.cut = true
			l.schedule(l.between(time.Second, 5*time.Second), func() {
				p.cut = false
				p.fetch()
				l.log.elect()
			})
		}
	default:
		if len(ids) > 0 {
			p := l.processes[ids[l.IntN(len(ids))]]
			for range 1 + l.IntN(3) {
				p.order(l.drawOrder())
			}
		}
	}
}

// drawOrder returns an order that changes something, changes nothing, or is refused.
func (l *lab) drawOrder() machine.Event {
	checker := fmt.Sprint("x", l.IntN(3))
	switch l.IntN(5) {
	case 0:
		return &machine.ClearTrust{Checker: checker, Author: "ann"}
	case 1:
		return machine.Begun{} // no order of an operator
	case 2:
		return &machine.Annotate{Event: l.newEvent(1, &health.Checker{})}
	}
	return &machine.SetTrust{Checker: checker, Trust: log.Trust{Level: log.Trusted, Reason: "x", Author: "ann"}}
}

// checkOrders checks that each order ended, and is in the log if and only if it succeeded.
func (l *lab) checkOrders() {
	l.Helper()
	for id, o := range l.orders {
		count := l.log.orders[id]
		switch {
		case count > 1:
			l.Errorf("order %v is %d times in the log", id, count)
		case !o.done && !o.process.ended:
			l.Errorf("order %v does not end", id)
		case o.done && (o.err == nil) != (count == 1):
			l.Errorf("order %v ended with %v and is %d times in the log", id, o.err, count)
		}
	}
}

// TestDecisionsResume covers how soon decisions go on after a change of leader: when the new one has read the log
// and the checkers report.
func TestDecisionsResume(t *testing.T) {
	for seed := range uint64(20) {
		l := newFleet(t, seed)
		l.turn("10.0.0.1:80")
		for range 6 {
			l.pass(12 * reportInterval)
			l.log.endEpoch()
			l.turn("10.0.0.1:80")
			want := l.trueStatus("10.0.0.1:80")
			// A second each for the election and the reports, two for the end of a slow message.
			l.pass(4*time.Second + 500*time.Millisecond)
			for _, p := range l.running() {
				for key, course := range p.planes {
					if key.Address == "10.0.0.1:80" && course[len(course)-1].status != want {
						t.Errorf("seed %d: %s publishes %v after %v", seed, p.id, course, l.now.Sub(start))
					}
				}
			}
		}
		l.explained()
	}
}
