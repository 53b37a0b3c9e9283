package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hdsd/test/plot"
)

// options are what bench was asked for.
type options struct {
	binary, base string
	full         bool
	turns        int
	only, docs   string
}

// lives are the scenarios of fleets, with the marks that hold at their sizes.
func lives(full bool) []scenario {
	marks := map[int]float64{memoryFigure: 1.5, endpointsFigure: 40, availabilityFigure: 100}
	if !full {
		return []scenario{lifeOf(30_000, 300, 60, marks)}
	}
	maps.Copy(marks, map[int]float64{readyFigure: 3, verdictsFigure: 20, restFigure: 0.5, againFigure: 10})
	return []scenario{
		lifeOf(300_000, 3000, 300, map[int]float64{toldFigure: 1, durableFigure: 3}),
		lifeOf(1_000_000, 10_000, 1000, marks),
	}
}

func lifeOf(endpoints, clusters, checkers int, marks map[int]float64) *fleet {
	f := aFleet(endpoints, clusters, checkers)
	f.rest = 10 * time.Second
	all := f.figures()
	f.marks = map[string]float64{}
	for i, mark := range marks {
		f.marks[all[i].name] = mark
	}
	return f
}

// scenarios is the work that is measured.
func scenarios(full bool) []scenario {
	return append([]scenario{
		&reports{title: "unchanged full reports, 200 checkers x 1,500 entries", checkers: 200, entries: 1500, mark: 1.2},
		&reports{title: "unchanged full reports while first verdicts are written", checkers: 200, entries: 1500, started: true, mark: 1.5},
		&reports{title: "full reports with 0.1 % changed, 200 checkers x 1,500 entries", checkers: 200, entries: 1500, changed: 0.001, mark: 2},
		&reports{title: "reports of 4 entries, 1,000 checkers", checkers: 1000, entries: 4, mark: 1.5},
		&pushes{title: "one flip to 500 delta data planes of 1,000 assignments", subscribers: 500, clusters: 1000, delta: true, markCPU: 1.2, markTime: 1.2},
		&pushes{title: "one flip to 50 state-of-the-world data planes of 1,000 names", subscribers: 50, clusters: 1000, markCPU: 1.5, markTime: 1.2},
		&pushes{title: "first sync of 500 delta data planes of 1,000 assignments", subscribers: 500, clusters: 1000, delta: true, firstSync: true, markCPU: 1.3},
		&echoes{entries: 600},
		&watchers{title: "1,000 watchers through 10,000 transitions", watchers: 1000, endpoints: 2500, transitions: 10_000, markTime: 3},
	}, append(lives(full), severalReplicas(full)...)...)
}

// results is what a run has found.
type results struct {
	machine  machine
	full     bool
	turns    int
	outcomes []*outcome
	growths  []*growth
}

func (r *results) rows() (all []row) {
	for _, o := range r.outcomes {
		all = append(all, o.rows()...)
	}
	return all
}

// bench measures and prints. A whole run without a base writes the document.
func (o *options) bench() error {
	dir, err := os.MkdirTemp("", "hdsd-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := &lab{dir: dir, turns: o.turns, lives: 1, binary: o.binary}
	baseBinary := ""
	if o.base != "" {
		l.lives = o.turns
		if baseBinary, err = build(dir, o.base); err != nil {
			return err
		}
	}
	found := &results{machine: thisMachine(), full: o.full, turns: o.turns}
	worse, err := o.measure(l, found, baseBinary)
	if err != nil {
		tails(dir)
		return err
	}
	if err := o.grow(l, found); err != nil {
		tails(dir)
		return err
	}
	found.machine.took = time.Since(found.machine.began)
	fmt.Printf("\n%s; %v\n", found.machine.heading(), found.machine.took.Round(time.Second))
	switch {
	case len(worse) > 0:
		return fmt.Errorf("slower than %s beyond noise:\n  %s", o.base, strings.Join(worse, "\n  "))
	case len(found.outcomes)+len(found.growths) == 0:
		return fmt.Errorf("no scenario has %q in its name", o.only)
	case o.base != "" || o.only != "":
		return nil
	}
	return found.write(o.docs)
}

// grow measures growth, in a whole run without a base.
func (o *options) grow(l *lab, found *results) error {
	if o.base != "" || o.only != "" && o.only != "growth" {
		return nil
	}
	few := *l
	few.turns = 2
	for _, g := range growths(o.full) {
		if err := g.measure(&few, o.binary); err != nil {
			return err
		}
		fmt.Print(g.table())
		found.growths = append(found.growths, g)
	}
	return nil
}

// write writes the document and its plots.
func (r *results) write(folder string) error {
	charts := []*plot.Chart{r.chart()}
	for _, g := range r.growths {
		charts = append(charts, g.chart())
	}
	errs := []error{os.WriteFile(filepath.Join(folder, "performance.md"), []byte(r.document()), 0o644)}
	for _, c := range charts {
		errs = append(errs, os.WriteFile(filepath.Join(folder, c.File), []byte(c.SVG()), 0o644))
	}
	return errors.Join(errs...)
}

// measure runs the scenarios, and returns what is slower than the base.
func (o *options) measure(l *lab, found *results, baseBinary string) (worse []string, err error) {
	fmt.Println(found.machine.heading())
	if baseBinary == "" {
		fmt.Print("\n", tableHead)
	} else {
		fmt.Print("\n| work | ", o.base, " | now | now : before | |\n| --- | --- | --- | --- | --- |\n")
	}
	for _, s := range scenarios(o.full) {
		if !strings.Contains(s.name(), o.only) || o.base != "" && o.only == "" && strings.HasPrefix(s.name(), ofReplicas) {
			continue // the base may know no replicas
		}
		out, err := run(l, s, o.binary, baseBinary)
		if err != nil {
			return nil, err
		}
		found.outcomes = append(found.outcomes, out)
		if baseBinary != "" {
			worse = append(worse, out.compared()...)
			continue
		}
		for _, r := range out.rows() {
			fmt.Print(r)
		}
	}
	return worse, nil
}

// tails shows what processes said last.
func tails(dir string) {
	for _, pattern := range []string{"*.log", "*/*.log"} {
		logs, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is well formed
		for _, path := range logs {
			if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
				const last = 3000
				fmt.Fprintf(os.Stderr, "%s:\n%s\n", filepath.Base(path), text[max(0, len(text)-last):])
			}
		}
	}
}
