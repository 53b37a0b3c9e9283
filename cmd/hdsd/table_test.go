package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

func TestATableOfManyRowsShowsWhatCameLate(t *testing.T) {
	var out bytes.Buffer
	p := newTable(&out, piped(), []string{"name", "note", "reason"})
	for i := range 3 * tableBlock {
		note := ""
		if i == 2*tableBlock+1 {
			note = "late"
		}
		if err := p.row(nil, []string{"x", note, "because"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.close(); err != nil {
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
	if err := newTable(&out, piped(), []string{"name", "voted", "share", "note"}).close(); err != nil || out.String() != "NAME  NOTE\n" {
		t.Errorf("without rows: %q, %v", out.String(), err)
	}
}

// piped is where nobody looks, wide is a terminal of so many columns.
func piped() screen { return wide(0) }

func wide(columns int) screen { return screen{width: func() int { return columns }} }

// TestTablesFitTheScreen shows one answer on screens of several widths.
func TestTablesFitTheScreen(t *testing.T) {
	f := newFake()
	f.endpoints[0].Cluster, f.endpoints[0].Address = "支付-eu", "[2001:db8::1]:443"
	var shown []string
	for _, columns := range []int{0, 200, 120, 80, 30} {
		var out bytes.Buffer
		p := newTable(&out, wide(columns), endpointsHeader)
		for _, e := range f.endpoints {
			if err := p.row(e, endpointCells(e)); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.close(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if line = strings.TrimSuffix(line, "\n"); columns > 0 && textWidth(line) > columns {
				t.Errorf("on %d columns a line has %d: %s", columns, textWidth(line), line)
			}
		}
		shown = append(shown, fmt.Sprintf("%d columns:\n%s", columns, &out))
	}
	golden(t, "widths.txt", strings.Join(shown, "\n"))
}

func TestColours(t *testing.T) {
	address := serveFake(t, newFake())
	_, without, _ := hdsd(t, "endpoints", "--server", address)
	if strings.Contains(without, "\x1b") {
		t.Errorf("colours where nobody looks: %q", without)
	}
	_, with, _ := hdsd(t, "endpoints", "--color", "always", "--server", address)
	for _, want := range []string{"\x1b[32mHEALTHY\x1b[0m", "\x1b[31mUNHEALTHY\x1b[0m", "  UNKNOWN  ", "\x1b[33mDRAINING\x1b[0m"} {
		if !strings.Contains(with, want) {
			t.Errorf("without %q: %q", want, with)
		}
	}
	plain := strings.NewReplacer(string(red), "", string(green), "", string(yellow), "", reset, "").Replace(with)
	if plain != without {
		t.Errorf("colours move what is shown:\n%s\n%s", plain, without)
	}
	_, clusters, _ := hdsd(t, "clusters", "--color", "always", "--server", address)
	for _, want := range []string{"\x1b[33mwhole cluster: cannot be read\x1b[0m", "\x1b[33mFROZEN\x1b[0m"} {
		if !strings.Contains(clusters, want) {
			t.Errorf("without %q: %q", want, clusters)
		}
	}
}

func TestWhatWouldMoveTheCursorIsEscaped(t *testing.T) {
	f := newFake()
	f.endpoints = f.endpoints[:1]
	f.endpoints[0].Reason = "\x1b[2Jgone\tand\rback\u0301\u202e\nweb"
	_, out, _ := hdsd(t, "endpoints", "--server", serveFake(t, f))
	if !strings.Contains(out, `\x1b[2Jgone\tand\rback`+"\u0301"+`\u202e\nweb`) {
		t.Errorf("shows %q", out)
	}
}

func TestTimesAsPeopleSayThem(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for _, c := range []struct {
		show       func(string, time.Time) string
		cell, want string
	}{
		{clock, "2026-03-04T01:02:03.004Z", "01:02:03.004"},
		{clock, "2026-03-03T23:59:59.999Z", "Mar 03 23:59:59.999"},
		{clock, "2025-03-04T01:02:03.004Z", "2025-03-04 01:02:03.004"},
		{clock, "", ""},
		{ago, "2026-03-04T05:06:06.500Z", "now"},
		{ago, "2026-03-04T05:06:08Z", "now"},
		{ago, "2026-03-04T05:06:05.500Z", "1s ago"},
		{ago, "2026-03-04T05:00:00Z", "6m07s ago"},
		{ago, "2026-03-03T05:06:08Z", "23h59m ago"},
		{ago, "2026-03-01T00:00:00Z", "3d05h ago"},
		{ago, "", ""},
		{lasting, "0", ""},
		{lasting, "0.250", "0.2s"},
		{lasting, "399.500", "6m39s"},
		{lasting, "86400", "1d00h"},
		{percent, "1.000000", "100.000%"},
		{percent, "0.999999", "99.999%"},
		{percent, "", ""},
	} {
		if got := c.show(c.cell, at); got != c.want {
			t.Errorf("%q is shown as %q, want %q", c.cell, got, c.want)
		}
	}
}

func TestTextWidth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "web": 3, "größe": 5, "gro\u0308ße": 5, "支付": 4, "ﾊﾝｶｸ": 4, "🙂": 2, "a\u200bb": 2} {
		if got := textWidth(text); got != want {
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
		lines := wrap(text, room)
		for _, line := range lines {
			if textWidth(line) > room {
				t.Errorf("%q is wider than %d", line, room)
			}
		}
		if got, want := squeeze(strings.Join(lines, " ")), squeeze(text); got != want {
			t.Errorf("%q became %q", want, got)
		}
	})
}

// TestCheckersFitAnOrdinaryTerminal: a fleet in working order is a table, as
// narrow as terminals commonly are.
func TestCheckersFitAnOrdinaryTerminal(t *testing.T) {
	for _, columns := range []int{100, 120} {
		var out bytes.Buffer
		p := newTable(&out, wide(columns), checkersHeader)
		for i := range 3 {
			cells := checkerCells(&hdsdv1.Checker{
				Id: fmt.Sprintf("checker-%d", i), Locality: &corev3.Locality{Region: "eu", Zone: "a"}, Connected: true, Trusted: true,
				Version: "hdsd/v0.0.0-20260102030405-0123456789ab", Abilities: []string{"HTTP", "TCP", "GRPC", "REDIS", "THRIFT"},
				AssignedEndpoints: 1200, Specifier: "SYNCED", LastReport: timestamppb.New(now()), ChecksPerSecond: 240, Share: 1190, PlanDigest: "00c0ffee00c0ffee",
			})
			if err := p.row(nil, cells); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.close(); err != nil || !strings.HasPrefix(out.String(), "ID ") || strings.Contains(out.String(), "c0ffee") {
			t.Errorf("on %d columns: %v\n%s", columns, err, &out)
		}
	}
}

// TestColumnsOfAWatchStay however long the names of states in later rows are.
func TestColumnsOfAWatchStay(t *testing.T) {
	var out bytes.Buffer
	p := newTable(&out, piped(), []string{"from", "health", "reason"})
	for _, cells := range [][]string{{"UNKNOWN", "HEALTHY", "why"}, {"UNHEALTHY", "UNHEALTHY", "why"}} {
		if err := p.flush(); err != nil { // as where nothing has come
			t.Fatal(err)
		}
		if err := cmp.Or(p.row(nil, cells), p.flush()); err != nil {
			t.Fatal(err)
		}
	}
	if want := "FROM       HEALTH     REASON\nUNKNOWN    HEALTHY    why\nUNHEALTHY  UNHEALTHY  why\n"; out.String() != want {
		t.Errorf("shows\n%s", &out)
	}
}
