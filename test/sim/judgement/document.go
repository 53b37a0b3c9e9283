package main

import (
	"fmt"
	"strings"

	"hdsd/test/sim"
)

const about = `# How good the verdicts are

` + "`make sim`" + ` writes this page, and prints each figure by rule with its spread. It plays each scenario in a simulated
fleet, by every rule, and compares the verdicts with the truth. The real packages ` + "`assign`" + ` and ` + "`aggregate`" + ` decide,
from reports alone. ` + "`go run ./test/sim/judgement -scenario '5 %% cut off' -first 7 -seeds 1`" + ` plays one scenario with
one seed.

- **Fleet:** seeds %d to %d, each with %d endpoints in %d clusters, %d checkers in %d zones. Each endpoint has %d
  checkers, one of them in its own zone.
- **Rounds:** a round is one check and one report, such as a second. ` + "`unhealthy_threshold`" + ` is 2 unless the rule says
  otherwise. A run has 60 rounds. Trouble lasts from round 20 to round 40 unless the scenario says otherwise.
- **Noise:** %g %% of the probes of healthy endpoints fail. %g %% of the reports are lost (the next one repeats them),
  and %g %% are up to a round late.
- **Outages:** in every scenario, %g %% of the endpoints are down for 20 rounds each, from rounds 20 to 30 on.
- **Blind checkers** get substitutes as the first rule with the same threshold finds them.
- **A checker that is cut off** from endpoints still reaches hdsd.
- **Not simulated:** substitutes for doubted checkers, trials of new clusters, overrides, damping, and waits in a mass
  failure.

Measures:

- *False-down rate*: the share of endpoint-rounds from round 10 on (%s a scenario) in which the verdict is down and
  the endpoint is up, and has been for %d rounds. Errors come in groups, so seeds spread widely.
- *False downs*: changes to down of healthy endpoints. *Flaps*: all changes that the truth does not make.
- *Missed*: outages that end before a verdict shows them.
- *Delay*: rounds from a failure to its verdict; 2 on average for one checker that is never late.
- *Moved, specifiers*: checks that move between checkers, and specifiers sent, in a run by the default rule.

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
		{"false-down rate", "5 % cut off", 1e-6, ofRate, rate, "Two checkers that are cut off take down what they share before enough peers contradict them."},
		{"false-down rate", "zone partition", 1e-6, ofRate, rate, "Before hdsd finds the cut path, noise or silence of the one checker that reaches an endpoint."},
		{"outages missed", "5 % stuck up", 0.003, ofLost, percent,
			"Two of three checkers are stuck for 0.7 % of the endpoints. Their outages show once hdsd knows both to be blind. `ANY`, or a redundancy of 5, avoids this."},
		{"mean delay, rounds", "nothing wrong", 2.1, ofDelay, decimal, late},
		{"p99 of the delay, rounds", "nothing wrong", 3, ofP99, tenths, late},
		{"p99 of the delay, rounds", "reports in time", 3, ofP99, tenths, late},
		{"false downs", "rolling restart", 0, ofDowns, whole, noisy},
		{"false downs", "hdsd restart", 0, ofDowns, whole, noisy},
	}
)

const (
	noisy = "Two of three checkers fail by chance at once, as in the scenario in which nothing is wrong."
	late  = "The checker in the endpoint's own zone is awaited before the others outvote it. Rules that do not wait are faster, and have false downs in a partition."
)

func (s *study) document() string {
	var d strings.Builder
	z := &s.size
	fmt.Fprintf(&d, about, s.first, s.last(), z.Endpoints, z.Clusters, z.Observers, z.Zones, z.Redundancy, 100*z.Noise, 100*z.Lost, 100*z.Late, 100*z.Failing,
		rate(float64(s.findings[0].figures[0].looked)), sim.Patience)
	s.writeRules(&d)
	s.writeMarks(&d)
	s.writeDefault(&d)
	s.writeOverview(&d)
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
	d.WriteString("## Against the marks\n\nThe design asks these of the default rule. ✗: missed.\n\n| mark | scenario | at most |")
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

// writeDefault gives every figure of the default rule.
func (s *study) writeDefault(d *strings.Builder) {
	fmt.Fprintf(d, "## The default, %s\n\nOver all seeds, and in brackets from the lowest to the highest seed.\n\n", s.rules[0].Name)
	d.WriteString("| scenario | false-down rate | false downs | missed | mean delay | p99 | flaps | moved | specifiers |\n|" + strings.Repeat(" --- |", 9) + "\n")
	for _, f := range s.findings {
		g := &f.figures[0]
		fmt.Fprintf(d, "| %s | %s | %d | %d of %d | %s | %.1f | %d | %.0f | %.0f |\n",
			f.Name, g.rate.rate(), g.falseDowns, g.missed, g.outages, g.delay.rounds(), g.p99, g.flaps, f.moved.all, f.specifiers.all)
	}
	d.WriteString("\n| scenario | trouble |\n| --- | --- |\n")
	for _, f := range s.findings {
		fmt.Fprintf(d, "| %s | %s |\n", f.Name, sentence(f.What))
	}
	d.WriteString("\n")
}

// writeOverview compares the rules.
func (s *study) writeOverview(d *strings.Builder) {
	d.WriteString("## Rules side by side\n\n")
	s.writeComparison(d, "False-down rate", ofRate, rate)
	s.writeComparison(d, "Missed outages in percent, where any rule misses one", ofLost, func(v float64) string {
		if v == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f", 100*v)
	})
	for _, p := range s.plots() {
		fmt.Fprintf(d, "![%s](%s)\n\n", p.Title, p.File)
	}
}

// writeComparison shows one figure by scenario and rule. It leaves out scenarios without a value.
func (s *study) writeComparison(d *strings.Builder, title string, figure func(*figures) float64, write func(float64) string) {
	fmt.Fprintf(d, "%s:\n\n| scenario |", title)
	s.writeHeader(d, 1)
	for _, f := range s.findings {
		var cells strings.Builder
		for i := range f.figures {
			fmt.Fprintf(&cells, " %s |", write(figure(&f.figures[i])))
		}
		if strings.Trim(cells.String(), " |") != "" {
			fmt.Fprintf(d, "| %s |%s\n", f.Name, &cells)
		}
	}
	d.WriteString("\n")
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
