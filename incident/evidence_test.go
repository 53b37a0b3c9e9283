package incident

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"hdsd/health"
)

// said are votes: of each checker its health, ! for one that did not count.
func said(votes ...string) (all []health.Observation) {
	for i, v := range votes {
		o := health.Observation{Checker: fmt.Sprintf("checker-%d", i+1), Status: health.Unhealthy}
		switch v {
		case "up":
			o.Status = health.Healthy
		case "!":
			o.Disbelieved = "doubted"
		}
		all = append(all, o)
	}
	return all
}

func doubted(second float64, checker string) *Event {
	return &Event{Time: noon.Add(time.Duration(second * float64(time.Second))), Checker: checker}
}

func cutTo(second float64, name string) *Event {
	return &Event{Time: noon.Add(time.Duration(second * float64(time.Second))), To: health.Locality{Region: "eu", Zone: name}}
}

// TestWhatEventsCause holds the rule by which events near the beginning decide the cause.
func TestWhatEventsCause(t *testing.T) {
	majority := said("down", "down", "up")
	for name, c := range map[string]struct {
		reason string
		votes  []health.Observation
		events []*Event
		want   Cause
	}{
		"nothing near":                      {"", majority, nil, Endpoint},
		"a path to its zone":                {"", majority, []*Event{cutTo(50, "a")}, Network},
		"a path to its zone, before":        {"", majority, []*Event{cutTo(-50, "a")}, Network},
		"a path to its zone, long before":   {"", majority, []*Event{cutTo(-61, "a")}, Endpoint},
		"a path to its zone, long after":    {"", majority, []*Event{cutTo(61, "a")}, Endpoint},
		"a path to another zone":            {"", majority, []*Event{cutTo(1, "b")}, Endpoint},
		"one of two that said so":           {"", majority, []*Event{doubted(5, "checker-2")}, Checkers},
		"one of three that said so":         {"", said("down", "down", "down"), []*Event{doubted(5, "checker-2")}, Endpoint},
		"two of three that said so":         {"", said("down", "down", "down"), []*Event{doubted(5, "checker-2"), doubted(-9, "checker-1")}, Checkers},
		"who said up":                       {"", majority, []*Event{doubted(5, "checker-3")}, Endpoint},
		"whose vote did not count":          {"", said("down", "down", "!"), []*Event{doubted(5, "checker-3")}, Endpoint},
		"both":                              {"", majority, []*Event{doubted(5, "checker-2"), cutTo(2, "a")}, Network},
		"an operator, whatever else":        {forced + " by ann", majority, []*Event{cutTo(2, "a")}, Operator},
		"who is doubted, but nobody voted":  {"", nil, []*Event{doubted(5, "checker-2")}, Endpoint},
		"a path to nowhere, of old records": {"", majority, []*Event{{Time: noon}}, Endpoint},
	} {
		for _, first := range []bool{true, false} {
			l := NewLog()
			note := func() {
				for _, e := range c.events {
					l.Note(e)
					l.Note(e)
				}
			}
			if first {
				note()
			}
			l.Add(1, &health.Transition{Time: noon, Endpoint: at("web", 1, "a"), To: health.Unhealthy, Reason: c.reason, Observations: c.votes})
			if !first {
				note()
			}
			found, _ := l.List(Query{Visible: everything})
			if len(found) != 1 || found[0].Cause != c.want {
				t.Errorf("%s, noted first: %t: %+v, want cause %d", name, first, found, c.want)
			}
		}
	}
}

// TestTheOrderOfEventsDoesNotCount: read in any order beside the transitions, and again,
// they cause the same.
func TestTheOrderOfEventsDoesNotCount(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var events []*Event
		for range 1 + random.IntN(40) {
			if second := float64(random.IntN(600)); random.IntN(2) == 0 {
				events = append(events, cutTo(second, string(rune('a'+random.IntN(3)))))
			} else {
				events = append(events, doubted(second, fmt.Sprint("checker-", 1+random.IntN(3))))
			}
		}
		var transitions []health.Transition
		for i := range 1 + random.IntN(60) {
			transitions = append(transitions, health.Transition{
				Time: noon.Add(time.Duration(i*10) * time.Second), Endpoint: at("web", random.IntN(3), string(rune('a'+random.IntN(3)))),
				To: []health.Status{health.Unhealthy, health.Healthy}[random.IntN(2)], Observations: said("down", "down", "up"),
			})
		}
		one, other := NewLog(), NewLog()
		for i := range transitions {
			one.Add(uint64(i+1), &transitions[i])
		}
		for _, e := range events {
			one.Note(e)
		}
		for i := range transitions {
			for _, e := range events {
				if random.IntN(20) == 0 {
					other.Note(e)
				}
			}
			other.Add(uint64(i+1), &transitions[i])
		}
		for _, i := range random.Perm(len(events)) {
			other.Note(events[i])
		}
		want, _ := one.List(Query{Visible: everything})
		got, _ := other.List(Query{Visible: everything})
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d:\n%v\nwant\n%v", seed, got, want)
		}
	}
}
