package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"hdsd/internal/printable"
	"hdsd/internal/table"
	"hdsd/simulate"
)

// printSimulation prints a result for people.
func printSimulation(w io.Writer, screen table.Screen, r *simulate.Result) error {
	elapsed := time.Duration(r.Plan.Seconds * float64(time.Second))
	pages := simulationTables{w: w, screen: screen}
	pages.text("%s in %s, %s in %s: %s, planned in %s (digest %s)",
		plural(r.Checkers, "checker"), plural(r.Zones, "zone"), plural(r.Endpoints, "endpoint"), plural(r.Clusters, "cluster"),
		plural(r.Plan.Checks, "check"), elapsed.Round(time.Millisecond/10), r.Plan.Digest)
	pages.rows([]string{"each_checker", "min", "median", "max", "mean", "max/mean"}, [][]string{
		spreadRow("endpoints", r.Plan.Endpoints),
		spreadRow("checks a second", r.Plan.ChecksPerSecond),
		spreadRow("in bursts", r.Plan.Burst),
		spreadRow("clusters", r.Plan.Clusters),
	})
	pages.text("The fullest checker has %s times its share by weight.", strconv.FormatFloat(r.Plan.MaxOfShare, 'f', 3, 64))
	pages.losses(r)
	pages.shortfalls("not_checked", r.NotChecked)
	pages.shortfalls("too_few_checkers", r.TooFew)
	pages.probing(r)
	return pages.err
}

// simulationTables prints tables one below the other, until an error.
type simulationTables struct {
	w      io.Writer
	screen table.Screen
	err    error
}

func (p *simulationTables) text(format string, args ...any) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, printable.Lines(fmt.Sprintf(format+"\n", args...)))
	}
}

func (p *simulationTables) rows(header []string, rows [][]string) {
	p.text("")
	t := newTable(p.w, p.screen, header)
	for _, row := range rows {
		if p.err == nil {
			p.err = t.Row(row)
		}
	}
	if p.err == nil {
		p.err = t.Close()
	}
}

func (p *simulationTables) losses(r *simulate.Result) {
	lost := r.LostCheckers
	rows := [][]string{
		lossRow(fmt.Sprintf("median of %d", lost.Tried), 1, lost.Median),
		lossRow("worst of them", 1, lost.Worst),
	}
	for _, z := range r.LostZones {
		name := strings.Trim(z.Region+"/"+z.Zone, "/")
		if name == "" {
			name = "(none)"
		}
		rows = append(rows, lossRow("zone "+name, z.Checkers, z.Loss))
	}
	p.rows([]string{"lost", "checkers", "checks_moved", "dropped", "not_checked", "checkers_told", "max_endpoints", "max_checks/s"}, rows)
	if unfit := lost.Tried - lost.Fit; unfit > 0 {
		p.text("The loss of %d of %d checkers drops checks that nobody can take over, that of %s most.", unfit, lost.Tried, lost.Missed)
	}
	if zones := len(r.LostZones); zones < r.Zones {
		p.text("%d of %d zones were tried.", zones, r.Zones)
	}
}

func (p *simulationTables) shortfalls(title string, list []simulate.Shortfall) {
	if len(list) == 0 {
		return
	}
	var rows [][]string
	for _, s := range list {
		rows = append(rows, []string{strconv.Itoa(s.Endpoints), strconv.Itoa(s.Clusters), s.Example, s.Reason})
	}
	p.rows([]string{title, "clusters", "such_as", "reason"}, rows)
}

func (p *simulationTables) probing(r *simulate.Result) {
	if r.DataPlanes == 0 {
		return
	}
	figures := r.Probing
	rows := [][]string{
		{"in all", figure(figures.Checks), figure(figures.OwnChecks)},
		{"on an endpoint, median", figure(figures.PerEndpoint.Median), figure(figures.OwnPerEndpoint.Median)},
		{"on an endpoint, max", figure(figures.PerEndpoint.Max), figure(figures.OwnPerEndpoint.Max)},
		{"by a checker, max", figure(r.Plan.ChecksPerSecond.Max), ""},
		{"by a data plane, max", "", figure(figures.PerDataPlane.Max)},
	}
	p.rows([]string{"checks_a_second", "hdsd", fmt.Sprintf("%d_data_planes_alone", r.DataPlanes)}, rows)
	if figures.Times > 0 {
		p.text("Data planes that check for themselves make %s times as many checks.", figure(figures.Times))
	}
}

func spreadRow(name string, s simulate.Spread) []string {
	return []string{name, figure(s.Min), figure(s.Median), figure(s.Max), figure(s.Mean), strconv.FormatFloat(s.MaxToMean, 'f', 3, 64)}
}

func lossRow(name string, checkers int, l simulate.Loss) []string {
	return []string{
		name, strconv.Itoa(checkers), strconv.Itoa(l.Moved), strconv.Itoa(l.Dropped), strconv.Itoa(l.NotChecked),
		strconv.Itoa(l.Told), strconv.Itoa(l.Busiest), figure(l.ChecksPerSecond),
	}
}

// figure formats a number with three significant digits, and all before the decimal
// point.
func figure(v float64) string {
	digits := 0
	for limit := 100.0; digits < 3 && v < limit && v != 0; limit /= 10 {
		digits++
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
