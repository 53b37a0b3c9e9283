package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"text/tabwriter"

	"hdsd/test/sim"
)

// study is every scenario played by every rule with every seed.
type study struct {
	size         sim.Size
	first, seeds int // the first seed, and how many
	rules        []sim.Rule
	findings     []*finding
}

// last is the last seed.
func (s *study) last() int { return s.first + s.seeds - 1 }

// finding is the result of one scenario.
type finding struct {
	sim.Scenario
	moved, specifiers spread
	figures           []figures // by rule
}

// spread is a figure over all runs, and the lowest and the highest of a run.
type spread struct{ all, low, high float64 }

// figures is the result of one scenario by one rule.
type figures struct {
	looked, wrong, falseDowns, flaps int
	outages, missed                  int
	rate, lost, delay                spread // false-down rate; share of outages missed; mean delay in rounds
	p99                              float64
}

// play plays a scenario with every seed and shows its progress.
func (s *study) play(x sim.Scenario) *finding {
	outcomes := make([]sim.Outcome, s.seeds)
	var wait sync.WaitGroup
	var mutex sync.Mutex // over done and the terminal
	todo, done := make(chan int), 0
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range todo {
				outcomes[i] = x.Run(s.size, uint64(s.first+i), s.rules)
				mutex.Lock()
				done++
				fmt.Fprintf(os.Stderr, "\r%s: %d of %d seeds ", x.Name, done, s.seeds)
				mutex.Unlock()
			}
		})
	}
	for i := range s.seeds {
		todo <- i
	}
	close(todo)
	wait.Wait()
	fmt.Fprint(os.Stderr, "\r\033[K")
	return s.sum(x, outcomes)
}

// sum combines the runs of a scenario.
func (s *study) sum(x sim.Scenario, outcomes []sim.Outcome) *finding {
	f := &finding{Scenario: x, figures: make([]figures, len(s.rules))}
	n := float64(len(outcomes))
	for i, o := range outcomes {
		f.moved.add(i, float64(o.Moved)/n, float64(o.Moved))
		f.specifiers.add(i, float64(o.Specifiers)/n, float64(o.Specifiers))
	}
	for rule := range s.rules {
		f.figures[rule] = figuresOf(outcomes, rule)
	}
	return f
}

func figuresOf(outcomes []sim.Outcome, rule int) figures {
	var g figures
	var all sim.Result
	for i, o := range outcomes {
		r := o.Results[rule]
		g.looked += r.Looked
		g.wrong += r.Wrong
		g.falseDowns += r.FalseDowns
		g.flaps += r.Flaps
		g.outages += r.Outages
		g.missed += r.Missed
		all.Delays = append(all.Delays, r.Delays...)
		mean, _ := r.Delay(1)
		g.rate.add(i, 0, r.Rate())
		g.lost.add(i, 0, float64(r.Missed)/float64(r.Outages))
		g.delay.add(i, 0, mean)
	}
	g.rate.all = float64(g.wrong) / float64(g.looked)
	g.lost.all = float64(g.missed) / float64(g.outages)
	g.delay.all, g.p99 = all.Delay(0.99)
	return g
}

// add adds run i to the total, the low and the high.
func (s *spread) add(i int, part, one float64) {
	s.all += part
	if i == 0 {
		s.low, s.high = one, one
	}
	s.low, s.high = min(s.low, one), max(s.high, one)
}

// print writes the table of a scenario.
func (f *finding) print(out io.Writer, rules []sim.Rule) {
	fmt.Fprintf(out, "\n%s: %s\nmoved %s, specifiers %s a run\n", f.Name, f.What, f.moved.count(), f.specifiers.count())
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tFALSE-DOWN RATE\tFALSE DOWNS\tMISSED\tDELAY MEAN\tP99\tFLAPS")
	for i := range f.figures {
		g := &f.figures[i]
		fmt.Fprintf(w, "%s\t%s\t%d\t%d of %d\t%s\t%.1f\t%d\n", rules[i].Name, g.rate.rate(), g.falseDowns, g.missed, g.outages, g.delay.rounds(), g.p99, g.flaps)
	}
	_ = w.Flush() // it is for a person to read
}

// rate writes a rate with its spread.
func (s spread) rate() string { return s.write(rate) }

func (s spread) rounds() string {
	return s.write(func(v float64) string { return fmt.Sprintf("%.2f", v) })
}

func (s spread) count() string {
	return s.write(func(v float64) string { return fmt.Sprintf("%.0f", v) })
}

func (s spread) write(one func(float64) string) string {
	if s.low == s.high {
		return one(s.all)
	}
	return fmt.Sprintf("%s (%s to %s)", one(s.all), one(s.low), one(s.high))
}

// rate writes a rate; none is 0.
func rate(v float64) string {
	if v == 0 {
		return "0"
	}
	return fmt.Sprintf("%.1e", v)
}
