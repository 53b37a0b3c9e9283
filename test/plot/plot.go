package plot

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// Chart is one of dots: a row for each thing, a colour for each series, and through each
// dot a line from low to high.
type Chart struct {
	File, Title string
	Rows, Names []string // Names are those of the series
	Values      func(row, series int) Dot
	Least, Most float64 // of the axis
	Log         bool
	Label       func(float64) string
	Ticks       []float64
}

// Dot is where a dot is, and the line through it.
type Dot struct{ At, Low, High float64 }

// Sizes in pixels.
const (
	plotLeft, plotWidth, plotRight = 190, 640, 20
	plotTop, dotStep, rowGap       = 70, 8, 10
)

var colours = []string{"#1b6ca8", "#8a8a8a", "#d1495b", "#2e933c", "#e08e0b", "#7b4ea3", "#159a9c", "#4a3b32", "#c2185b"}

// x returns the position of a value.
func (p *Chart) x(v float64) float64 {
	v = max(p.Least, min(p.Most, v))
	share := (v - p.Least) / (p.Most - p.Least)
	if p.Log {
		share = math.Log(v/p.Least) / math.Log(p.Most/p.Least)
	}
	return plotLeft + share*plotWidth
}

// SVG draws it.
func (p *Chart) SVG() string {
	var s strings.Builder
	rowHeight := dotStep*len(p.Names) + rowGap
	bottom := plotTop + rowHeight*len(p.Rows)
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		plotLeft+plotWidth+plotRight, bottom+30)
	s.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	text(&s, 10, 20, "start", p.Title)
	for i, name := range p.Names {
		x := float64(10 + i*(plotLeft+plotWidth)/len(p.Names))
		fmt.Fprintf(&s, `<circle cx="%.1f" cy="40" r="4" fill="%s"/>`+"\n", x+4, colours[i%len(colours)])
		text(&s, x+12, 44, "start", name)
	}
	for _, t := range p.Ticks {
		x := p.x(t)
		fmt.Fprintf(&s, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>`+"\n", x, plotTop-8, x, bottom)
		text(&s, x, float64(bottom+16), "middle", p.Label(t))
	}
	for row, name := range p.Rows {
		top := plotTop + row*rowHeight
		text(&s, plotLeft-12, float64(top+rowHeight/2), "end", name)
		for i := range p.Names {
			v, y := p.Values(row, i), float64(top+i*dotStep)+dotStep/2
			fmt.Fprintf(&s, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="1.5"/>`+"\n",
				p.x(v.Low), y, p.x(v.High), y, colours[i%len(colours)])
			fmt.Fprintf(&s, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", p.x(v.At), y, colours[i%len(colours)])
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
