package main

import (
	"fmt"

	"hdsd/test/plot"
)

func dot(s spread) plot.Dot { return plot.Dot{At: s.all, Low: s.low, High: s.high} }

// plots returns the plots of the document.
func (s *study) plots() []*plot.Chart {
	var rows, names []string
	for _, f := range s.findings {
		rows = append(rows, f.Name)
	}
	for _, r := range s.rules {
		names = append(names, r.Name)
	}
	least := 0.1 / float64(s.findings[0].figures[0].looked)
	return []*plot.Chart{
		{
			File: "judgement-false-down.svg", Title: "False-down rate. Dot: all seeds; line: lowest to highest seed; left edge: none.",
			Rows: rows, Names: names, Log: true, Least: least, Most: 1,
			Ticks: []float64{least, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1},
			Label: func(v float64) string {
				if v == least {
					return "none"
				}
				return fmt.Sprintf("%.0e", v)
			},
			Values: func(row, i int) plot.Dot { return dot(s.findings[row].figures[i].rate) },
		},
		{
			File: "judgement-delay.svg", Title: "Rounds from an outage to the verdict. Dot: mean; end of the line: 99 of 100 are not above.",
			Rows: rows, Names: names, Most: 20, Ticks: []float64{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20},
			Label: func(v float64) string { return fmt.Sprint(v) },
			Values: func(row, i int) plot.Dot {
				g := &s.findings[row].figures[i]
				return plot.Dot{At: g.delay.all, Low: g.delay.all, High: g.p99}
			},
		},
		{
			File: "judgement-missed.svg", Title: "Outages never seen, in percent. Dot: all seeds; line: lowest to highest seed.",
			Rows: rows, Names: names, Most: 20, Ticks: []float64{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20},
			Label: func(v float64) string { return fmt.Sprintf("%g %%", v) },
			Values: func(row, i int) plot.Dot {
				l := s.findings[row].figures[i].lost
				return plot.Dot{At: 100 * l.all, Low: 100 * l.low, High: 100 * l.high}
			},
		},
	}
}
