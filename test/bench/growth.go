package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"hdsd/test/plot"
)

// growth is how figures of hdsd grow with one size.
type growth struct {
	by    string // what grows
	still string // what stays
	sizes []int
	make  func(size int) scenario

	outcomes []*outcome // by size
}

// growths is what is measured. The large sizes take hours and gigabytes.
func growths(full bool) []*growth {
	endpoints, checkers, subscribers := []int{1000, 3000, 10_000, 30_000}, []int{10, 30, 100, 300}, []int{10, 50, 200, 500}
	if full {
		endpoints = append(endpoints, 100_000, 300_000, 1_000_000)
		checkers = append(checkers, 1000, 5000)
		subscribers = append(subscribers, 1000, 2000, 5000)
	}
	return []*growth{
		{by: "endpoints", still: "30 checkers, 100 endpoints a cluster", sizes: endpoints, make: func(n int) scenario { return aFleet(n, n/100, 30) }},
		{by: "checkers", still: "10,000 endpoints in 100 clusters", sizes: checkers, make: func(n int) scenario { return aFleet(10_000, 100, n) }},
		{by: "data planes", still: "100 assignments", sizes: subscribers, make: func(n int) scenario {
			return &pushes{title: fmt.Sprintf("%d data planes", n), subscribers: n, clusters: 100, delta: true}
		}},
	}
}

func aFleet(endpoints, clusters, checkers int) *fleet {
	return &fleet{title: fmt.Sprintf("%d endpoints x 3 on %d checkers", endpoints, checkers), endpoints: endpoints, clusters: clusters, checkers: checkers, rest: 3 * time.Second}
}

// measure runs all sizes, with hdsd alone.
func (g *growth) measure(l *lab, binary string) error {
	for _, size := range g.sizes {
		s := g.make(size)
		c, err := s.hdsd(l, binary)
		if err != nil {
			return fmt.Errorf("growth by %s: %d: %w", g.by, size, err)
		}
		c.name = ours
		out, err := alternate(s, []*contender{c}, s.turns(l))
		c.close()
		if err != nil {
			return fmt.Errorf("growth by %s: %d: %w", g.by, size, err)
		}
		g.outcomes = append(g.outcomes, out)
	}
	return nil
}

// exponent is the slope of a line through the logarithms: y grows as x to the power of it.
func exponent(x []int, y []float64) float64 {
	var n, sumX, sumY, sumXX, sumXY float64
	for i := range x {
		if y[i] <= 0 {
			continue
		}
		a, b := math.Log(float64(x[i])), math.Log(y[i])
		n, sumX, sumY, sumXX, sumXY = n+1, sumX+a, sumY+b, sumXX+a*a, sumXY+a*b
	}
	return (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
}

// values is a figure by size.
func (g *growth) values(figure int) (all []float64) {
	for _, o := range g.outcomes {
		all = append(all, o.value(ours, figure).median)
	}
	return all
}

func (g *growth) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## By %s\n%s.\n\n| %s |", g.by, g.still, g.by)
	for _, size := range g.sizes {
		fmt.Fprintf(&b, " %d |", size)
	}
	b.WriteString(" exponent |\n| --- |" + strings.Repeat(" --- |", len(g.sizes)+1) + "\n")
	for i, f := range g.outcomes[0].figures {
		fmt.Fprintf(&b, "| %s, %s |", f.name, f.unit)
		for _, v := range g.values(i) {
			fmt.Fprintf(&b, " %s |", number(v))
		}
		fmt.Fprintf(&b, " %.2f |\n", exponent(g.sizes, g.values(i)))
	}
	return b.String()
}

func (g *growth) file() string { return "performance-" + strings.ReplaceAll(g.by, " ", "-") + ".svg" }

// chart shows each figure as a multiple of that of the smallest size.
func (g *growth) chart() *plot.Chart {
	c := &plot.Chart{
		File: g.file(), Title: "Growth by " + g.by + ": each figure over that of the smallest size, from 1 to the growth of the size.",
		Least: 0.1, Most: 10 * float64(g.sizes[len(g.sizes)-1]) / float64(g.sizes[0]), Log: true, Label: func(v float64) string { return fmt.Sprint(v) },
	}
	for v := c.Least; v <= c.Most; v *= 10 {
		c.Ticks = append(c.Ticks, math.Round(v*10)/10)
	}
	for _, size := range g.sizes {
		c.Rows = append(c.Rows, fmt.Sprint(size, " ", g.by))
	}
	figures := g.outcomes[0].figures
	for i := range figures {
		c.Names = append(c.Names, fmt.Sprint(i+1))
	}
	c.Values = func(row, series int) plot.Dot {
		v := g.values(series)
		if v[0] <= 0 {
			return plot.Dot{At: c.Least, Low: c.Least, High: c.Least}
		}
		return plot.Dot{At: v[row] / v[0], Low: 1, High: v[row] / v[0]}
	}
	return c
}
