package decision_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hdsd/coordinator/decision"
)

// numbered is a decision that can be told apart.
func numbered(i int) *decision.Decision { return &decision.Decision{Clusters: []string{fmt.Sprint(i)}} }

// read reads up to a number of decisions, as text; "behind" where some were lost.
func read(c decision.Cursor, limit int) string {
	var found []string
	for range limit {
		d, err := c.Next()
		switch {
		case errors.Is(err, decision.ErrBehind):
			found = append(found, "behind")
			continue
		case d == nil:
			return strings.Join(found, " ")
		}
		found = append(found, d.Clusters[0])
	}
	return strings.Join(found, " ")
}

func TestEachCursorReadsAtItsOwnPace(t *testing.T) {
	log := decision.NewMemory(10)
	log.Append(numbered(0)) // nobody follows
	fast, slow := log.Follow(), log.Follow()
	for i := 1; i <= 3; i++ {
		log.Append(numbered(i))
	}
	if got := read(fast, 9); got != "1 2 3" {
		t.Errorf("the fast one reads %q", got)
	}
	if got := read(slow, 1); got != "1" {
		t.Errorf("the slow one reads %q", got)
	}
	late := log.Follow()
	log.Append(numbered(4))
	for name, c := range map[string]decision.Cursor{"2 3 4": slow, "4": late} {
		if got := read(c, 9); got != name {
			t.Errorf("read is %q, want %q", got, name)
		}
	}
	if got := read(fast, 9); got != "4" {
		t.Errorf("the fast one reads %q", got)
	}
}

func TestASlowFollowerLosesTheOldestAndIsTold(t *testing.T) {
	log := decision.NewMemory(2)
	slow, fast := log.Follow(), log.Follow()
	var seen []string
	for i := range 5 {
		log.Append(numbered(i))
		seen = append(seen, read(fast, 9))
	}
	if got := strings.Join(seen, " "); got != "0 1 2 3 4" {
		t.Errorf("beside a slow one, the fast one reads %q", got)
	}
	if got := read(slow, 9); got != "behind 3 4" {
		t.Errorf("the slow one reads %q", got)
	}
	log.Append(numbered(5))
	if got := read(slow, 9); got != "5" {
		t.Errorf("then the slow one reads %q", got)
	}
}

// TestMemoryModel compares with cursors in a list that keeps everything.
func TestMemoryModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		log := decision.NewMemory(limit)
		var cursors []decision.Cursor
		var next []int // of each cursor
		appended := 0
		t.Repeat(map[string]func(*rapid.T){
			"append": func(*rapid.T) {
				log.Append(numbered(appended))
				appended++
			},
			"follow": func(t *rapid.T) {
				if len(cursors) > 3 {
					t.Skip("enough")
				}
				cursors, next = append(cursors, log.Follow()), append(next, appended)
			},
			"read": func(t *rapid.T) {
				if len(cursors) == 0 {
					t.Skip("nobody reads")
				}
				i := rapid.IntRange(0, len(cursors)-1).Draw(t, "cursor")
				want := ""
				switch {
				case appended-next[i] > limit:
					want, next[i] = "behind", appended-limit
				case next[i] < appended:
					want = fmt.Sprint(next[i])
					next[i]++
				}
				if got := read(cursors[i], 1); got != want {
					t.Fatalf("cursor %d reads %q, want %q", i, got, want)
				}
			},
		})
	})
}

// BenchmarkAppend appends a decision that three followers take at once.
func BenchmarkAppend(b *testing.B) {
	log := decision.NewMemory(1024)
	followers := []decision.Cursor{log.Follow(), log.Follow(), log.Follow()}
	d := numbered(0)
	b.ReportAllocs()
	for b.Loop() {
		log.Append(d)
		for _, f := range followers {
			for next, _ := f.Next(); next != nil; next, _ = f.Next() {
			}
		}
	}
}
