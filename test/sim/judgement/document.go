package main

import (
	"fmt"
	"strings"

	"hdsd/test/sim"
)

const about = `# How good the verdicts are

` + "`make sim`" + ` writes this page; do not edit it. It plays each scenario below in a simulated fleet, by every rule, and
compares what hdsd decides with what is true. The code that decides is the real ` + "`assign`" + ` and ` + "`aggregate`" + `. It gets
nothing but the reports.

- **Fleet:** seeds %d to %d, each with %d endpoints in %d clusters, %d checkers in %d zones, %d checkers an endpoint,
  one of them in the endpoint's own zone.
- **Rounds:** checks and reports come every round (think of a second). ` + "`unhealthy_threshold`" + ` is 2 unless the rule says
  otherwise. A run is 60 rounds. Trouble begins in round 20 and, unless said otherwise, ends in round 40.
- **Noise:** of the probes of something healthy, %g %% fail for no reason. %g %% of the reports are lost (the next one
  says the same), and %g %% are up to a round late.
- **Outages:** in every scenario, %g %% of the endpoints are also truly down for 20 rounds each, beginning in rounds 20
  to 30.
- **Blind checkers** are outnumbered by substitutes, as the first of the rules with the same threshold finds them.
- **A checker that is cut off** from its endpoints still reaches hdsd. One that does not is a restart.
- **Left out:** substitutes for checkers that are not believed, trials of new clusters, overrides, and the options that
  are off by default (damping, waiting in a mass failure).

` + "`go run ./test/sim/judgement -scenario '5 %% cut off' -first 7 -seeds 1`" + ` plays one scenario with one seed again.

The measures:

- *False-down rate*: the part of all endpoints in all rounds from the tenth on (%s a scenario) that hdsd says is down
  while it is up. An endpoint that came up less than %d rounds ago does not count. Errors last for several rounds and
  come in groups, so the seeds spread more than their number suggests.
- *False downs*: changes to down of what is up. *Flaps*: all changes that the truth does not make, the way back from a
  false down included.
- *Missed*: outages that end before any verdict says so.
- *Delay*: rounds from the moment when an endpoint fails to the verdict. With a threshold of 2, a checker that is never
  late needs 1 to 3, and 2 on average.
- *Moved, specifiers*: checks given to another checker, and specifiers sent, in a run by the default.

`

// mark is a requirement for the verdicts.
type mark struct {
	what, scenario string
	most           float64
	of             func(*figures) float64
	write          func(float64) string
	why            string // why the rule may miss it
}

var (
	ofRate  = func(g *figures) float64 { return g.rate.all }
	ofDowns = func(g *figures) float64 { return float64(g.falseDowns) }
	ofLost  = func(g *figures) float64 { return g.lost.all }
	ofDelay = func(g *figures) float64 { return g.delay.all }
	ofP99   = func(g *figures) float64 { return g.p99 }
	decimal = func(v float64) string { return fmt.Sprintf("%.3f", v) }
	tenths  = func(v float64) string { return fmt.Sprintf("%.1f", v) }
	percent = func(v float64) string { return fmt.Sprintf("%.2f %%", 100*v) }
	whole   = func(v float64) string { return fmt.Sprintf("%.0f", v) }

	marks = []mark{
		{"false-down rate", "nothing wrong", 1e-6, ofRate, rate, noisy},
		{"false-down rate", "5 % cut off", 1e-6, ofRate, rate, "What two checkers that are cut off share goes down where that happens before enough of their peers contradict them."},
		{"false-down rate", "zone partition", 1e-6, ofRate, rate, "Noise at the one checker that still reaches an endpoint, or its silence, in the rounds before the cut path is found out."},
		{"outages missed", "5 % stuck up", 0.003, ofLost, percent,
			"Where two of three checkers are stuck (0.7 % of the endpoints, by chance) no majority sees the outage until both are known to be blind and others check beside them, " +
				"which takes outages that their peers see. Where that is too high: `ANY`, or a redundancy of 5."},
		{"mean delay, rounds", "nothing wrong", 2.1, ofDelay, decimal, late},
		{"p99 of the delay, rounds", "nothing wrong", 3, ofP99, tenths, late},
		{"p99 of the delay, rounds", "reports in time", 3, ofP99, tenths, late},
		{"false downs", "rolling restart", 0, ofDowns, whole, noisy},
		{"false downs", "hdsd restart", 0, ofDowns, whole, noisy},
	}
)

const (
	noisy = "Now and then two of three checkers have bad luck with an endpoint at the same time; compare the scenario in which nothing is wrong."
	late  = "The checker in the endpoint's own zone is heard out before the others outvote it, which takes longer where its report is lost or late. Rules that do not wait for it " +
		"are faster, and have false downs in a partition."
)

func (s *study) document() string {
	var d strings.Builder
	z := &s.size
	fmt.Fprintf(&d, about, s.first, s.last(), z.Endpoints, z.Clusters, z.Observers, z.Zones, z.Redundancy, 100*z.Noise, 100*z.Lost, 100*z.Late, 100*z.Failing,
		rate(float64(s.findings[0].figures[0].looked)), sim.Patience)
	s.writeRules(&d)
	s.writeMarks(&d)
	s.writeOverview(&d)
	s.writeScenarios(&d)
	return d.String()
}

func (s *study) writeRules(d *strings.Builder) {
	d.WriteString("| rule | says |\n| --- | --- |\n")
	for _, r := range s.rules {
		fmt.Fprintf(d, "| %s | %s |\n", r.Name, r.What)
	}
	d.WriteString("\n")
}

// writeMarks compares the figures with the requirements.
func (s *study) writeMarks(d *strings.Builder) {
	d.WriteString("## Against the marks\n\nWhat the design asks of the default. ✗: missed.\n\n| mark | scenario | at most |")
	s.writeHeader(d, 3)
	var missed []string
	for _, m := range marks {
		fmt.Fprintf(d, "| %s | %s | %s |", m.what, m.scenario, m.write(m.most))
		f := s.finding(m.scenario)
		for i := range s.rules {
			v := m.of(&f.figures[i])
			fmt.Fprintf(d, " %s%s |", m.write(v), map[bool]string{true: " ✗"}[v > m.most])
			if i == 0 && v > m.most {
				missed = append(missed, fmt.Sprintf("%s, %s: %s instead of at most %s. %s", m.what, m.scenario, m.write(v), m.write(m.most), m.why))
			}
		}
		d.WriteString("\n")
	}
	if len(missed) == 0 {
		fmt.Fprintf(d, "\nThe default, %s, meets all of them.\n\n", s.rules[0].Name)
		return
	}
	fmt.Fprintf(d, "\nThe default, %s, misses:\n\n", s.rules[0].Name)
	for _, m := range missed {
		fmt.Fprintf(d, "- %s\n", m)
	}
	d.WriteString("\n")
}

func (s *study) finding(scenario string) *finding {
	for _, f := range s.findings {
		if f.Name == scenario {
			return f
		}
	}
	return nil
}

// writeHeader ends the header of a table whose other columns are the rules.
func (s *study) writeHeader(d *strings.Builder, before int) {
	for _, r := range s.rules {
		fmt.Fprintf(d, " %s |", r.Name)
	}
	fmt.Fprintf(d, "\n|%s\n", strings.Repeat(" --- |", before+len(s.rules)))
}

// writeOverview shows all scenarios side by side.
func (s *study) writeOverview(d *strings.Builder) {
	d.WriteString("## Side by side\n\nFalse-down rate:\n\n| scenario |")
	s.writeHeader(d, 1)
	for _, f := range s.findings {
		fmt.Fprintf(d, "| %s |", f.Name)
		for i := range f.figures {
			fmt.Fprintf(d, " %s |", rate(f.figures[i].rate.all))
		}
		d.WriteString("\n")
	}
	d.WriteString("\nMean delay in rounds / what 99 of 100 are not above:\n\n| scenario |")
	s.writeHeader(d, 1)
	for _, f := range s.findings {
		fmt.Fprintf(d, "| %s |", f.Name)
		for i := range f.figures {
			fmt.Fprintf(d, " %.2f / %.1f |", f.figures[i].delay.all, f.figures[i].p99)
		}
		d.WriteString("\n")
	}
	d.WriteString("\n")
	for _, p := range s.plots() {
		fmt.Fprintf(d, "![%s](%s)\n\n", p.Title, p.File)
	}
}

// writeScenarios gives every figure.
func (s *study) writeScenarios(d *strings.Builder) {
	d.WriteString("## Every figure\n\nOver all seeds, and in brackets from the lowest to the highest seed.\n")
	for _, f := range s.findings {
		fmt.Fprintf(d, "\n### %s\n\n%s. Moved %s, specifiers %s.\n\n", f.Name, sentence(f.What), f.moved.count(), f.specifiers.count())
		d.WriteString("| rule | false-down rate | false downs | missed | delay mean | p99 | flaps |\n| --- | --- | --- | --- | --- | --- | --- |\n")
		for i := range f.figures {
			g := &f.figures[i]
			fmt.Fprintf(d, "| %s | %s | %d | %d of %d | %s | %.1f | %d |\n", s.rules[i].Name, g.rate.rate(), g.falseDowns, g.missed, g.outages, g.delay.rounds(), g.p99, g.flaps)
		}
	}
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
