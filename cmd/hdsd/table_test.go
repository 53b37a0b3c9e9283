package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
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
	_, clusters, _ := hdsd(t, "clusters", "--color", "always", "--server", address)
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
	_, out, _ := hdsd(t, "endpoints", "--server", serveFake(t, f))
	if !strings.Contains(out, `\x1b[2Jgone\tand\rback`+"\u0301"+`\u202e\nweb`) {
		t.Errorf("shows %q", out)
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
