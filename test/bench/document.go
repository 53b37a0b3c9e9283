package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"hdsd/test/plot"
)

// machine is what the figures depend on.
type machine struct {
	processor, load string
	began           time.Time
	took            time.Duration
}

func thisMachine() machine {
	m := machine{processor: "unknown", load: loadAverage(), began: time.Now()}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				m.processor = strings.TrimSpace(value)
				break
			}
		}
	}
	return m
}

// loadAverage is those of 1, 5 and 15 minutes.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], ", ")
}

func (m machine) heading() string {
	return fmt.Sprintf("%d cores, %s, %s; load average at the start: %s, at the end: %s",
		runtime.NumCPU(), m.processor, runtime.Version(), m.load, loadAverage())
}

// number has three digits.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

func (s spread) String() string {
	return fmt.Sprintf("%s (%s to %s)", number(s.median), number(s.low), number(s.high))
}

// row is a line of the table.
type row struct {
	work, hdsd, floor, ratio, mark, peers string
	of                                    spread // what the mark is of
	apart                                 bool   // the mark is not of the ratio
	bound                                 float64
}

func (o *outcome) rows() (all []row) {
	for i, f := range o.figures {
		v := o.value(ours, i)
		r := row{work: o.name + ": " + f.name, hdsd: v.String() + " " + f.unit, of: v, bound: f.mark}
		judged := v
		if f.floor != "" {
			r.floor = fmt.Sprintf("%s: %s %s", f.floor, number(o.value(f.floor, i).median), f.unit)
			r.of = o.ratio(ours, f.floor, i)
			r.ratio, judged = r.of.String(), r.of
		}
		if f.mark > 0 {
			switch {
			case f.beyond != "":
				judged, r.apart = o.difference(ours, f.beyond, i), true
				r.mark = fmt.Sprintf("%s %s beyond %s <= %g %s", judged, f.unit, f.beyond, f.mark, f.unit)
			case f.floor != "" && !f.itself:
				r.mark = fmt.Sprintf("<= %g", f.mark)
			default:
				judged, r.apart = v, true
				r.mark = fmt.Sprintf("<= %g %s", f.mark, f.unit)
			}
			if judged.median > f.mark {
				r.mark += ", missed"
			} else {
				r.mark += ", met"
			}
		}
		var peers []string
		for _, name := range o.names {
			if name != ours && name != f.floor && len(o.values[name][i]) > 0 {
				peers = append(peers, fmt.Sprintf("%s: %s %s", name, number(o.value(name, i).median), f.unit))
			}
		}
		r.peers = strings.Join(peers, "; ")
		all = append(all, r)
	}
	return all
}

func (r row) String() string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", r.work, r.hdsd, r.floor, r.ratio, r.mark, r.peers)
}

const tableHead = "| work | hdsd | floor | hdsd : floor | mark | peers |\n| --- | --- | --- | --- | --- | --- |\n"

const introduction = `# Performance

%s writes this page; do not edit it. hdsd, floors and peers are processes of one run, and take
turns; the load is one more process on the same cores.

- **Machine:** %s.
- **Run:** %s, in %s; %d turns of each after one to warm up, but
  one of watchers and of fleets, two of growth, and three of leaders that end.
- **A figure** is the median of its turns, with the lowest and the highest in brackets. A ratio compares neighbouring
  turns.
- **CPU** is user and system time of one process.
- **A floor** only moves the bytes over gRPC: it drops reports, writes one encoded frame to everybody, or answers at
  once. It neither reads nor decodes. Among the peers is the same with hdsd's gRPC settings (fixed windows, buffers that
  are used again). The floor of watchers writes texts to plain connections.
- **Peers:** LinearCache and SnapshotCache of go-control-plane, with its own server. "Unmarshal and a map" decodes each
  report by ` + "`proto.Unmarshal`" + ` and keeps each health in a map.
- **Replicas:** three hdsd, three servers of etcd, which sync to disk, and the load share the cores. A single
  coordinator has the same checkers, and as many data planes. The floor is etcd alone: a put until watches at all three
  servers have it; for a leader that ends, a revoked lease until the next leader's put is there; at rest, three leases.
- **Where a mark is missed:** [where the time goes](../figures.md#where-the-time-goes).
- **A turn ends** when hdsd has read all reports, endpoints have failed, and a data plane knows it; of pushes, when each
  data plane has its push. Else the run fails.

`

// document is docs/reference/performance.md.
func (r *results) document() string {
	var b strings.Builder
	command := "`make bench`"
	if r.full {
		command = "`make bench FULL=1`"
	}
	fmt.Fprintf(&b, introduction, command, wrap(r.machine.heading()), r.machine.began.UTC().Format(time.DateOnly),
		r.machine.took.Round(time.Second), r.turns)
	b.WriteString(tableHead)
	for _, row := range r.rows() {
		b.WriteString(row.String())
	}
	fmt.Fprintf(&b, "\n![Ratios to the floor](%s)\n", ratiosFile)
	for _, g := range r.growths {
		b.WriteString(g.table())
		fmt.Fprintf(&b, "\nThe rows in the order of the plot's colours, each over its value at the smallest size.\n\n![Growth by %s](%s)\n", g.by, g.file())
	}
	return b.String()
}

// wrap breaks a list item where it would be too long.
func wrap(text string) string { return strings.ReplaceAll(text, "; load", ";\n  load") }

const ratiosFile = "performance-ratios.svg"

// chart shows the ratios to the floor, and their marks.
func (r *results) chart() *plot.Chart {
	var rows []row
	for _, one := range r.rows() {
		if one.ratio != "" && !one.apart {
			rows = append(rows, one)
		}
	}
	c := &plot.Chart{
		File: ratiosFile, Title: "hdsd : floor. Dot: median; line: lowest to highest turn. Second dot: the mark.",
		Names: []string{"hdsd", "mark"}, Least: 0.5, Most: 20, Log: true,
		Ticks: []float64{0.5, 1, 1.5, 2, 3, 5, 10, 20}, Label: func(v float64) string { return fmt.Sprint(v) },
		Values: func(row, series int) plot.Dot {
			if one := rows[row]; series == 0 {
				return plot.Dot{At: one.of.median, Low: one.of.low, High: one.of.high}
			}
			return plot.Dot{At: rows[row].bound, Low: rows[row].bound, High: rows[row].bound}
		},
	}
	for i, one := range rows {
		c.Rows = append(c.Rows, fmt.Sprintf("%d. %s", i+1, short(one.work)))
	}
	return c
}

// short fits beside a plot.
func short(work string) string {
	const most = 28
	if letters := []rune(work); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return work
}
