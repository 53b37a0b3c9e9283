package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// plot is a chart of dots: a row for each scenario, a colour for each rule,
// and through each dot a line from low to high.
type plot struct {
	file, title string
	rows, names []string
	values      func(row, series int) spread
	least, most float64 // of the axis
	log         bool    // least stands for none, then
	label       func(float64) string
	ticks       []float64
}

// Sizes in pixels.
const (
	plotLeft, plotWidth, plotRight = 190, 640, 20
	plotTop, dotStep, rowGap       = 70, 8, 10
)

var colours = []string{"#1b6ca8", "#8a8a8a", "#d1495b", "#2e933c", "#e08e0b", "#7b4ea3", "#159a9c", "#4a3b32", "#c2185b"}

// x returns the position of a value.
func (p *plot) x(v float64) float64 {
	v = max(p.least, min(p.most, v))
	share := (v - p.least) / (p.most - p.least)
	if p.log {
		share = math.Log(v/p.least) / math.Log(p.most/p.least)
	}
	return plotLeft + share*plotWidth
}

func (p *plot) svg() string {
	var s strings.Builder
	rowHeight := dotStep*len(p.names) + rowGap
	bottom := plotTop + rowHeight*len(p.rows)
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		plotLeft+plotWidth+plotRight, bottom+30)
	s.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	text(&s, 10, 20, "start", p.title)
	for i, name := range p.names {
		x := float64(10 + i*(plotLeft+plotWidth)/len(p.names))
		fmt.Fprintf(&s, `<circle cx="%.1f" cy="40" r="4" fill="%s"/>`+"\n", x+4, colours[i%len(colours)])
		text(&s, x+12, 44, "start", name)
	}
	for _, t := range p.ticks {
		x := p.x(t)
		fmt.Fprintf(&s, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>`+"\n", x, plotTop-8, x, bottom)
		text(&s, x, float64(bottom+16), "middle", p.label(t))
	}
	for row, name := range p.rows {
		top := plotTop + row*rowHeight
		text(&s, plotLeft-12, float64(top+rowHeight/2), "end", name)
		for i := range p.names {
			v, y := p.values(row, i), float64(top+i*dotStep)+dotStep/2
			fmt.Fprintf(&s, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="1.5"/>`+"\n",
				p.x(v.low), y, p.x(v.high), y, colours[i%len(colours)])
			fmt.Fprintf(&s, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", p.x(v.all), y, colours[i%len(colours)])
		}
	}
	s.WriteString("</svg>\n")
	return s.String()
}

func text(s *strings.Builder, x, y float64, anchor, what string) {
	fmt.Fprintf(s, `<text x="%.1f" y="%.1f" text-anchor="%s">`, x, y, anchor)
	_ = xml.EscapeText(s, []byte(what)) // a Builder cannot fail
	s.WriteString("</text>\n")
}

// plots returns the plots of the document.
func (s *study) plots() []*plot {
	var rows, names []string
	for _, f := range s.findings {
		rows = append(rows, f.Name)
	}
	for _, r := range s.rules {
		names = append(names, r.Name)
	}
	least := 0.1 / float64(s.findings[0].figures[0].looked)
	return []*plot{
		{
			file: "judgement-false-down.svg", title: "False-down rate. Dot: all seeds; line: lowest to highest seed; left edge: none.",
			rows: rows, names: names, log: true, least: least, most: 1,
			ticks: []float64{least, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1},
			label: func(v float64) string {
				if v == least {
					return "none"
				}
				return fmt.Sprintf("%.0e", v)
			},
			values: func(row, i int) spread { return s.findings[row].figures[i].rate },
		},
		{
			file: "judgement-delay.svg", title: "Rounds from an outage to the verdict. Dot: mean; end of the line: 99 of 100 are not above.",
			rows: rows, names: names, most: 20, ticks: []float64{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20},
			label: func(v float64) string { return fmt.Sprint(v) },
			values: func(row, i int) spread {
				g := &s.findings[row].figures[i]
				return spread{g.delay.all, g.delay.all, g.p99}
			},
		},
		{
			file: "judgement-missed.svg", title: "Outages never seen, in percent. Dot: all seeds; line: lowest to highest seed.",
			rows: rows, names: names, most: 20, ticks: []float64{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20},
			label: func(v float64) string { return fmt.Sprintf("%g %%", v) },
			values: func(row, i int) spread {
				l := s.findings[row].figures[i].lost
				return spread{100 * l.all, 100 * l.low, 100 * l.high}
			},
		},
	}
}
