package table

import (
	"bytes"
	"cmp"
	"strings"
	"testing"
	"time"
	"unicode"
)

// piped is a screen without a limit of width.
func piped() Screen { return Screen{Width: func() int { return 0 }} }

func TestATableOfManyRowsShowsWhatCameLate(t *testing.T) {
	var out bytes.Buffer
	p := New(&out, piped(), []string{"name", "note", "reason"}, nil)
	for i := range 3 * tableBlock {
		note := ""
		if i == 2*tableBlock+1 {
			note = "late"
		}
		if err := p.Row([]string{"x", note, "because"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if lines[0] != "NAME  REASON" || lines[1] != "x     because" {
		t.Errorf("begins with %q", lines[:2])
	}
	if again := lines[2*tableBlock+1]; again != "NAME  NOTE  REASON" {
		t.Errorf("where a column appears there is %q", again)
	}
	if !strings.Contains(out.String(), "x     late  because") || len(lines) != 3*tableBlock+3 {
		t.Errorf("%d lines", len(lines))
	}
	out.Reset()
	if err := New(&out, piped(), []string{"name", "voted", "share", "note"}, map[string]Look{"voted": {Optional: true}, "share": {Hidden: true}}).Close(); err != nil || out.String() != "NAME  NOTE\n" {
		t.Errorf("without rows: %q, %v", out.String(), err)
	}
}

func TestTimesAsPeopleSayThem(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for _, c := range []struct {
		show       func(string, time.Time) string
		cell, want string
	}{
		{Clock, "2026-03-04T01:02:03.004Z", "01:02:03.004"},
		{Clock, "2026-03-03T23:59:59.999Z", "Mar 03 23:59:59.999"},
		{Clock, "2025-03-04T01:02:03.004Z", "2025-03-04 01:02:03.004"},
		{Clock, "", ""},
		{Ago, "2026-03-04T05:06:06.500Z", "now"},
		{Ago, "2026-03-04T05:06:08Z", "now"},
		{Ago, "2026-03-04T05:06:05.500Z", "1s ago"},
		{Ago, "2026-03-04T05:00:00Z", "6m07s ago"},
		{Ago, "2026-03-03T05:06:08Z", "23h59m ago"},
		{Ago, "2026-03-01T00:00:00Z", "3d05h ago"},
		{Ago, "", ""},
		{Lasting, "0", ""},
		{Lasting, "0.250", "0.2s"},
		{Lasting, "0.049", "<0.1s"},
		{Lasting, "399.500", "6m39s"},
		{Lasting, "86400", "1d00h"},
		{Percent, "1.000000", "100.000%"},
		{Percent, "0.999999", "99.999%"},
		{Percent, "", ""},
	} {
		if got := c.show(c.cell, at); got != c.want {
			t.Errorf("%q is shown as %q, want %q", c.cell, got, c.want)
		}
	}
}

func TestTextWidth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "web": 3, "größe": 5, "gro\u0308ße": 5, "支付": 4, "ﾊﾝｶｸ": 4, "🙂": 2, "a\u200bb": 2} {
		if got := TextWidth(text); got != want {
			t.Errorf("%q is %d columns wide, want %d", text, got, want)
		}
	}
}

// FuzzWrapLosesNothing: whatever is wrapped fits, and only spaces are lost.
func FuzzWrapLosesNothing(f *testing.F) {
	f.Add("checker-1=UNHEALTHY(503) checker-2=TIMEOUT", 14)
	f.Add("db.internal:5432: is a hostname\n支付支付 10.0.0.1:1", 5)
	f.Fuzz(func(t *testing.T, text string, room int) {
		text, room = strings.ToValidUTF8(text, "?"), 2+room&63
		squeeze := func(s string) string {
			return strings.Map(func(r rune) rune {
				if unicode.IsSpace(r) {
					return -1
				}
				return r
			}, s)
		}
		lines := Wrap(text, room)
		for _, line := range lines {
			if TextWidth(line) > room {
				t.Errorf("%q is wider than %d", line, room)
			}
		}
		if got, want := squeeze(strings.Join(lines, " ")), squeeze(text); got != want {
			t.Errorf("%q became %q", want, got)
		}
	})
}

// TestColumnsOfAWatchStay however long the names of states in later rows are.
func TestColumnsOfAWatchStay(t *testing.T) {
	var out bytes.Buffer
	p := New(&out, piped(), []string{"from", "health", "reason"}, map[string]Look{"from": {Reserve: "UNHEALTHY"}, "health": {Reserve: "UNHEALTHY"}})
	for _, cells := range [][]string{{"UNKNOWN", "HEALTHY", "why"}, {"UNHEALTHY", "UNHEALTHY", "why"}} {
		if err := p.Flush(); err != nil { // as where nothing has come
			t.Fatal(err)
		}
		if err := cmp.Or(p.Row(cells), p.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	if want := "FROM       HEALTH     REASON\nUNKNOWN    HEALTHY    why\nUNHEALTHY  UNHEALTHY  why\n"; out.String() != want {
		t.Errorf("shows\n%s", &out)
	}
}

// TestSpareColumnsMakeRoom before anything wraps, the most spare ones first.
func TestSpareColumnsMakeRoom(t *testing.T) {
	looks := map[string]Look{"where": {Spare: 2}, "note": {Spare: 1}}
	for width, want := range map[int]string{
		0: "NAME  WHERE  NOTE\nlong  here   because\n", 20: "NAME  WHERE  NOTE\nlong  here   because\n",
		19: "NAME  NOTE\nlong  because\n", 12: "NAME\nlong\n",
	} {
		for _, whole := range []bool{false, true} {
			var out bytes.Buffer
			p := New(&out, Screen{Width: func() int { return width }}, []string{"name", "where", "note"}, looks)
			p.Whole = whole
			if err := cmp.Or(p.Row([]string{"long", "here", "because"}), p.Close()); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); !whole && got != want || whole && !strings.Contains(got, "here") {
				t.Errorf("%d columns, whole %v:\n%s", width, whole, got)
			}
		}
	}
}

// TestColumnsOfTheEnvironment count more than what the output is.
func TestColumnsOfTheEnvironment(t *testing.T) {
	for value, want := range map[string]int{"80": 80, "": 0, "wide": 0, "-1": 0} {
		t.Setenv("COLUMNS", value)
		s, err := ScreenOf(&bytes.Buffer{}, "auto")
		if err != nil || s.Width() != want {
			t.Errorf("COLUMNS=%q: %d columns, %v", value, s.Width(), err)
		}
	}
}
