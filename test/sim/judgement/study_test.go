package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"hdsd/test/sim"
)

// TestDocument shows every scenario, of which one is played, very small.
func TestDocument(t *testing.T) {
	s := study{size: sim.Of(1200), first: 1, seeds: 2, rules: sim.Rules()[:1]}
	played := s.play(sim.Scenarios()[0])
	for _, x := range sim.Scenarios() {
		f := *played
		f.Scenario = x
		s.findings = append(s.findings, &f)
	}
	text := s.document()
	for _, x := range sim.Scenarios() {
		if strings.Count(text, "\n| "+x.Name+" |") < 3 {
			t.Errorf("the document does not show %q", x.Name)
		}
	}
	for _, p := range s.plots() {
		if !strings.Contains(text, "("+p.File+")") {
			t.Errorf("the document does not show %s", p.File)
		}
		for d := xml.NewDecoder(strings.NewReader(p.SVG())); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", p.File, err)
			}
		}
	}
}

// TestSpread: one figure over all seeds, and the lowest and highest of a seed.
func TestSpread(t *testing.T) {
	outcomes := []sim.Outcome{
		{Moved: 4, Results: []sim.Result{{Looked: 100, Wrong: 3, Outages: 2, Missed: 1, Delays: []int{10}}}},
		{Moved: 8, Results: []sim.Result{{Looked: 300, Wrong: 1, Outages: 2, Delays: []int{20, 60}}}},
	}
	s := study{rules: sim.Rules()[:1]}
	f := s.sum(sim.Scenario{}, outcomes)
	g := f.figures[0]
	if want := (spread{6, 4, 8}); f.moved != want {
		t.Errorf("moved %v, want %v", f.moved, want)
	}
	if want := (spread{0.01, 1. / 300, 0.03}); g.rate != want {
		t.Errorf("rate %v, want %v", g.rate, want)
	}
	if want := (spread{0.25, 0, 0.5}); g.lost != want {
		t.Errorf("missed %v, want %v", g.lost, want)
	}
	if want := (spread{3, 1, 4}); g.delay != want || g.p99 != 6 {
		t.Errorf("delay %v, p99 %v, want %v and 6", g.delay, g.p99, want)
	}
}
