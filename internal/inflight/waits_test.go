package inflight

import (
	"testing"
	"time"
)

func TestAConnectionWaitsForATenthOfTheTime(t *testing.T) {
	const patience = 2 * time.Second
	var w waits
	now := time.Now()
	if got := w.next(patience, 0, now); got != patience {
		t.Errorf("the first one waits for %v", got)
	}
	w.took(patience)
	if got := w.next(patience, 0, now); got != 0 {
		t.Errorf("the next one waits for %v", got)
	}
	if got := w.next(patience, 0, now.Add(5*time.Second)); got != 500*time.Millisecond {
		t.Errorf("after 5 s one waits for %v", got)
	}
	if got := w.next(patience, 0, now.Add(time.Hour)); got != patience {
		t.Errorf("after an hour one waits for %v", got)
	}
	if got := w.next(patience, 1, now.Add(time.Hour)); got != patience/10 {
		t.Errorf("beside another stream one waits for %v", got)
	}
}

func TestHowLongAConnectionHasStoodStill(t *testing.T) {
	var s stands
	now := time.Now()
	for _, want := range []time.Duration{2 * time.Second, 4 * time.Second} {
		s.begin(now)
		if got := s.sum(now.Add(time.Second)); got != want-time.Second {
			t.Errorf("in the midst of a wait: %v, want %v", got, want-time.Second)
		}
		now = now.Add(2 * time.Second)
		if got := s.end(now); got != 2*time.Second {
			t.Errorf("a wait of 2 s was %v", got)
		}
		if got := s.sum(now.Add(time.Hour)); got != want {
			t.Errorf("after it: %v, want %v", got, want)
		}
	}
}
