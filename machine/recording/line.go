package recording

import (
	"fmt"
	"strings"
	"time"

	"hdsd/aggregate"
	"hdsd/fleet"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/rollout/canary"
	"hdsd/ruling/decision"
	"hdsd/store"
)

// Line is something that a machine decided, or found, for people.
type Line struct {
	Time     time.Time
	Kind     string          // health, override, freeze, trust, takeover, doubt, trial, checker, seats, specifier or pause
	Endpoint health.Endpoint // what it is about; fields are empty where it is about more
	Checker  string          // or several
	What     string
	Reason   string
}

// Lines returns what an effect says. Most say nothing.
func Lines(at time.Time, e machine.Effect) []Line {
	all := lines{at: at}
	switch e := e.(type) {
	case machine.Decided:
		all.decision(e.Decision)
	case machine.Judged:
		all.judged(e.Effects)
	case machine.TrialsChanged:
		for i := range e.Events {
			v := &e.Events[i]
			all.add(Line{Kind: "trial", Endpoint: health.Endpoint{Cluster: v.Cluster}, Checker: v.Checker, What: trialTexts[v.Kind], Reason: v.Reason})
		}
	case machine.Joined:
		all.add(Line{Kind: "checker", Checker: e.Checker.ID, What: "connected"})
	case machine.FleetChanged:
		all.fleet(e.Effects)
	case machine.Specified:
		all.add(Line{Kind: "specifier", Checker: e.Checker, What: fmt.Sprintf("endpoints to check: %d (number %d)", len(e.Specifier.Order), e.Specifier.Serial)})
	case machine.Paused:
		all.add(Line{Kind: "pause", What: fmt.Sprintf("hdsd stood still for %v", e.Lasted.Round(time.Millisecond))})
	}
	return all.list
}

var trialTexts = map[canary.Kind]string{
	canary.Started: "trial started", canary.Proven: "proven", canary.NotAccepted: "not accepted", canary.Lost: "canary lost",
	canary.Blocked: "blocked", canary.Withdrawn: "trial ended without a result",
}

var fleetTexts = map[fleet.Kind]string{
	fleet.Lost: "lost", fleet.SeatsGivenUp: "seats given up", fleet.StoppedReporting: "stopped reporting",
	fleet.SilentReplaced: "silent: got substitutes", fleet.SilentGivenUp: "silent: seats given up", fleet.SilentHeld: "silent: seats kept",
	fleet.DoubtedReplaced: "doubted: got substitutes", fleet.BlindOutnumbered: "blind: got substitutes", fleet.DoubtedHeld: "doubted: few substitutes",
	fleet.DoubtedHeldOver: "doubted: enough substitutes", fleet.NewcomersEstablished: "established", fleet.NewcomerLost: "newcomer lost",
	fleet.StandInsEnded: "on probation again", fleet.NoCheckers: "no checker is connected", fleet.NoCheckersOver: "a checker is connected again",
	fleet.LostHeld: "lost: seats kept", fleet.FellSilent: "fell silent", fleet.ReportsAgain: "reports again",
}

// lines collects lines of one time.
type lines struct {
	at   time.Time
	list []Line
}

func (l *lines) add(line Line) {
	line.Time = l.at
	l.list = append(l.list, line)
}

func (l *lines) fleet(e *fleet.Effects) {
	if e.Settled {
		l.add(Line{Kind: "seats", What: "hdsd has settled"})
	}
	for i := range e.Events {
		l.add(Line{Kind: "checker", Checker: strings.Join(e.Events[i].Checkers, " "), What: fleetTexts[e.Events[i].Kind]})
	}
	if e.Moves > 0 {
		l.add(Line{Kind: "seats", What: fmt.Sprintf("%d given or taken away", e.Moves)})
	}
}

// either returns the first text if something is so, else the second.
func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

func (l *lines) judged(e *aggregate.Effects) {
	for i := range e.Doubts {
		d := &e.Doubts[i]
		line := Line{Kind: "doubt", Checker: d.Checker, What: either(d.Doubted, "doubted", "believed again"), Reason: d.Reason}
		if d.Checker == "" {
			line.What = fmt.Sprintf("path from %s to %s %s", d.From, d.To, line.What)
		}
		l.add(line)
	}
	for i := range e.Blindness {
		b := &e.Blindness[i]
		l.add(Line{Kind: "doubt", Checker: b.Checker, What: either(b.Blind, "blind", "not blind any more"), Reason: b.Reason})
	}
	for i := range e.MassFailures {
		f := &e.MassFailures[i]
		l.add(Line{Kind: "doubt", Endpoint: health.Endpoint{Cluster: f.Cluster}, What: either(f.Over, "mass failure over", "mass failure"), Reason: f.Reason})
	}
	for i := range e.Divided {
		d := &e.Divided[i]
		l.add(Line{Kind: "doubt", What: fmt.Sprintf("zone %s/%s %s", d.Zone.Region, d.Zone.Zone, either(d.Over, "not divided any more", "divided"))})
	}
}

func (l *lines) decision(d *decision.Decision) {
	if f := d.Freeze; f != nil {
		line := Line{Kind: "freeze", What: either(f.After != nil, "frozen", "unfrozen"), Reason: "by " + f.By}
		if f.After != nil {
			line.Reason = attributed(f.After.Reason, f.By)
		}
		l.add(line)
	}
	for i := range d.Overrides {
		c := &d.Overrides[i]
		what := [...]string{decision.Set: "set to", decision.Cleared: "cleared:", decision.Expired: "expired:"}[c.Kind]
		l.add(Line{Kind: "override", Endpoint: c.Override.Scope, What: what + " " + c.Override.Status.String(), Reason: attributed(c.Override.Reason, c.By)})
	}
	if t := d.Trust; t != nil {
		line := Line{Kind: "trust", Checker: t.Checker, What: "judged by its votes again", Reason: "by " + t.By}
		if t.After != nil {
			line.What, line.Reason = either(t.After.Level == store.Trusted, "trusted", "distrusted"), attributed(t.After.Reason, t.By)
		}
		l.add(line)
	}
	for i := range d.Transitions {
		t := &d.Transitions[i]
		l.add(Line{Kind: "health", Endpoint: t.Endpoint, What: t.From.String() + " to " + t.To.String(), Reason: t.Reason})
	}
	for _, cluster := range d.TakenOver {
		l.add(Line{Kind: "takeover", Endpoint: health.Endpoint{Cluster: cluster}, What: "data planes stop checking it"})
	}
	for _, cluster := range d.GivenBack {
		l.add(Line{Kind: "takeover", Endpoint: health.Endpoint{Cluster: cluster}, What: "data planes check it again"})
	}
}

func attributed(reason, by string) string { return fmt.Sprintf("%s (%s)", reason, by) }
