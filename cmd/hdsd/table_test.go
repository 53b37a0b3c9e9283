package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/printable"
	"hdsd/internal/table"
)

// wide is a terminal of so many columns.
func wide(columns int) table.Screen { return table.Screen{Width: func() int { return columns }} }

// TestTablesFitTheScreen shows one answer on screens of several widths.
func TestTablesFitTheScreen(t *testing.T) {
	f := newFake()
	f.endpoints[0].Cluster, f.endpoints[0].Address = "支付-eu", "[2001:db8::1]:443"
	var shown []string
	for _, columns := range []int{0, 200, 120, 80, 30} {
		var out bytes.Buffer
		p := newTable(&out, wide(columns), endpointsHeader)
		for _, e := range f.endpoints {
			if err := p.Row(endpointCells(e)); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if line = strings.TrimSuffix(line, "\n"); columns > 0 && table.TextWidth(line) > columns {
				t.Errorf("on %d columns a line has %d: %s", columns, table.TextWidth(line), line)
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
	plain := strings.NewReplacer(string(table.Red), "", string(table.Green), "", string(table.Yellow), "", "\x1b[0m", "").Replace(with)
	if plain != without {
		t.Errorf("colours move what is shown:\n%s\n%s", plain, without)
	}
	_, clusters, _ := hdsd(t, "clusters", "-o", "wide", "--color", "always", "--server", address)
	for _, want := range []string{"\x1b[33mwhole cluster: cannot be read\x1b[0m", "\x1b[33mFROZEN\x1b[0m"} {
		if !strings.Contains(clusters, want) {
			t.Errorf("without %q: %q", want, clusters)
		}
	}
}

func TestControlCharactersAreEscaped(t *testing.T) {
	f := newFake()
	f.endpoints = f.endpoints[:1]
	f.endpoints[0].Reason = "\x1b[2Jgone\tand\rback\u0301\u202e\nweb"
	_, out, _ := hdsd(t, "endpoints", "-o", "wide", "--server", serveFake(t, f))
	if !strings.Contains(out, `\x1b[2Jgone\tand\rback`+"\u0301"+`\u202e\nweb`) {
		t.Errorf("shows %q", out)
	}
}

// TestNothingActsInAnyOutput: names that come from others do nothing to terminals and
// spreadsheets, whatever shows them.
func TestNothingActsInAnyOutput(t *testing.T) {
	const evil = "=cmd|' /C calc'!A0\x1b[2J\a\u202e\u009b31m"
	f := newFake()
	f.endpoints = f.endpoints[:1]
	f.endpoints[0].Cluster, f.endpoints[0].Reason = evil, evil
	f.endpoints[0].Locality = &corev3.Locality{Zone: evil}
	address := serveFake(t, f)
	for _, args := range [][]string{
		{"endpoints"}, {"endpoints", "-o", "csv"}, {"endpoints", "-o", "json"}, {"endpoints", "no\x1b[2Jwhere"},
	} {
		_, out, errors := hdsd(t, append(args, "--server", address)...)
		for _, shown := range []string{out, errors} {
			if !printable.Is(strings.ReplaceAll(shown, "\n", "")) {
				t.Errorf("%v shows %q", args, shown)
			}
		}
		if args[0] == "endpoints" && len(args) > 2 && args[2] == "csv" && !strings.Contains(out, ",'=cmd") && !strings.Contains(out, "\n'=cmd") {
			t.Errorf("a spreadsheet computes %q", out)
		}
		if args[0] == "endpoints" && len(args) > 2 && args[2] == "json" {
			var row struct{ Cluster string }
			if err := json.Unmarshal([]byte(out), &row); err != nil || row.Cluster != evil {
				t.Errorf("JSON is %q: %v", out, err)
			}
		}
	}
}

// TestNothingActsInAWarning of a freeze, and where it is shown.
func TestNothingActsInAWarning(t *testing.T) {
	const evil = "\x1b[2J\a\u202e\u009b31m"
	control, address := serveFreezable(t)
	control.frozen = &hdsdv1.FreezeState{Frozen: true, Reason: evil, Author: evil, Since: timestamppb.New(now())}
	for _, args := range [][]string{{"endpoints", "-o", "json"}, {"freeze", "--show"}} {
		_, out, errors := hdsd(t, append(args, "--server", address)...)
		if shown := strings.ReplaceAll(out+errors, "\n", ""); !printable.Is(shown) || !strings.Contains(shown, `\x1b[2J`) {
			t.Errorf("%v shows %q", args, shown)
		}
	}
}

// TestNothingActsInTheLog in either format.
func TestNothingActsInTheLog(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		log, err := (&logFlags{level: "info", format: format}).logger(&out)
		if err != nil {
			t.Fatal(err)
		}
		const evil = "\x1b[2J\a\u202e\u009b31m"
		log.Warn().Str("event", "x").Str("checker", evil).Strs("all", []string{evil}).Err(errors.New(evil)).Msg(evil)
		if line := strings.TrimSuffix(out.String(), "\n"); !printable.Is(line) || !strings.Contains(line, "202e") {
			t.Errorf("%s: %q", format, line)
		}
	}
}

// TestCommandsPrintBySay: what prints by package fmt alone shows names as they are.
func TestCommandsPrintBySay(t *testing.T) {
	allowed := map[string]bool{"man.go": true, "version.go": true, "progress.go": true} // without names, or escaped there
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") && !allowed[file] && strings.Contains(string(text), "fmt.Fprint") {
			t.Errorf("%s prints by package fmt: use say", file)
		}
	}
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
			if err := p.Row(cells); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(); err != nil || !strings.HasPrefix(out.String(), "ID ") || strings.Contains(out.String(), "c0ffee") {
			t.Errorf("on %d columns: %v\n%s", columns, err, &out)
		}
	}
}
