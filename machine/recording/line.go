package recording

import (
	"fmt"
	"strings"
	"time"

	"hdsd/aggregate"
	"hdsd/fleet"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/rollout/canary"
)

// Line describes an effect for people.
type Line struct {
	Time     time.Time
	Kind     string          // health, override, freeze, trust, takeover, doubt, trial, checker, seats, specifier or pause
	Endpoint health.Endpoint // its fields are empty for a cluster or for all endpoints
	Checker  string          // id, or ids with spaces between them
	Text     string
	Reason   string
}

// Lines returns the lines of an effect. Most effects have none.
func Lines(now time.Time, e machine.Effect) []Line {
	found := lines{time: now}
	switch e := e.(type) {
	case machine.Logged:
		found.entry(e.Entry)
	case machine.VotesJudged:
		found.findings(e.Effects)
	case machine.TrialsChanged:
		for i := range e.Events {
			v := &e.Events[i]
			found.add(Line{Kind: "trial", Endpoint: health.Endpoint{Cluster: v.Cluster}, Checker: v.Checker, Text: trialTexts[v.Kind], Reason: v.Reason})
		}
	case machine.CheckerJoined:
		found.add(Line{Kind: "checker", Checker: e.Checker.ID, Text: "connected"})
	case machine.FleetChanged:
		found.fleet(e.Effects)
	case machine.SpecifierMade:
		found.add(Line{Kind: "specifier", Checker: e.Checker, Text: fmt.Sprintf("endpoints to check: %d (number %d)", len(e.Specifier.Order), e.Specifier.Serial)})
	case machine.PauseEnded:
		found.add(Line{Kind: "pause", Text: fmt.Sprintf("hdsd stood still for %v", e.Duration.Round(time.Millisecond))})
	}
	return found.list
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

// lines collects the lines of one time.
type lines struct {
	time time.Time
	list []Line
}

func (l *lines) add(line Line) {
	line.Time = l.time
	l.list = append(l.list, line)
}

func (l *lines) fleet(e *fleet.Effects) {
	if e.Settled {
		l.add(Line{Kind: "seats", Text: "hdsd has settled"})
	}
	for i := range e.Events {
		l.add(Line{Kind: "checker", Checker: strings.Join(e.Events[i].Checkers, " "), Text: fleetTexts[e.Events[i].Kind]})
	}
	if e.Moves > 0 {
		l.add(Line{Kind: "seats", Text: fmt.Sprintf("%d given or taken away", e.Moves)})
	}
}

// choose returns the first text if the condition is true, else the second.
func choose(condition bool, first, second string) string {
	if condition {
		return first
	}
	return second
}

func (l *lines) findings(e *aggregate.Effects) {
	for i := range e.Doubts {
		d := &e.Doubts[i]
		line := Line{Kind: "doubt", Checker: d.Checker, Text: choose(d.Doubted, "doubted", "believed again"), Reason: d.Reason}
		if d.Checker == "" {
			line.Text = fmt.Sprintf("path from %s to %s %s", d.From, d.To, line.Text)
		}
		l.add(line)
	}
	for i := range e.Blindness {
		b := &e.Blindness[i]
		l.add(Line{Kind: "doubt", Checker: b.Checker, Text: choose(b.Blind, "blind", "not blind any more"), Reason: b.Reason})
	}
	for i := range e.MassFailures {
		f := &e.MassFailures[i]
		l.add(Line{Kind: "doubt", Endpoint: health.Endpoint{Cluster: f.Cluster}, Text: choose(f.Over, "mass failure over", "mass failure"), Reason: f.Reason})
	}
	for i := range e.Divided {
		d := &e.Divided[i]
		l.add(Line{Kind: "doubt", Text: fmt.Sprintf("zone %s/%s %s", d.Zone.Region, d.Zone.Zone, choose(d.Over, "not divided any more", "divided"))})
	}
}

func (l *lines) entry(e *log.Entry) {
	if f := e.Freeze; f != nil {
		line := Line{Kind: "freeze", Text: choose(f.After != nil, "frozen", "unfrozen"), Reason: "by " + f.By}
		if f.After != nil {
			line.Reason = attributed(f.After.Reason, f.By)
		}
		l.add(line)
	}
	for i := range e.Overrides {
		c := &e.Overrides[i]
		text := [...]string{log.Set: "set to", log.Cleared: "cleared:", log.Expired: "expired:"}[c.Kind]
		l.add(Line{Kind: "override", Endpoint: c.Override.Scope, Text: text + " " + c.Override.Status.String(), Reason: attributed(c.Override.Reason, c.By)})
	}
	if t := e.Trust; t != nil {
		line := Line{Kind: "trust", Checker: t.Checker, Text: "judged by its votes again", Reason: "by " + t.By}
		if t.After != nil {
			line.Text, line.Reason = choose(t.After.Level == log.Trusted, "trusted", "distrusted"), attributed(t.After.Reason, t.By)
		}
		l.add(line)
	}
	for i := range e.Transitions {
		t := &e.Transitions[i]
		l.add(Line{Kind: "health", Endpoint: t.Endpoint, Text: t.From.String() + " to " + t.To.String(), Reason: t.Reason})
	}
	for _, cluster := range e.TakenOver {
		l.add(Line{Kind: "takeover", Endpoint: health.Endpoint{Cluster: cluster}, Text: "data planes stop checking it"})
	}
	for _, cluster := range e.GivenBack {
		l.add(Line{Kind: "takeover", Endpoint: health.Endpoint{Cluster: cluster}, Text: "data planes check it again"})
	}
}

// attributed returns a reason with its author.
func attributed(reason, author string) string { return fmt.Sprintf("%s (%s)", reason, author) }
