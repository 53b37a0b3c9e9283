package main

import (
	"net"
	"strings"
	"testing"
	"time"
)

func TestCompletionKnowsWhatTheCoordinatorKnows(t *testing.T) {
	address := serveFake(t, newFake())
	for args, want := range map[string]string{
		"endpoints --server %|":                "db\t9 of 12 healthy\nidle\t0 of 0 healthy\nplain\t0 of 3 healthy\nweb\t0 of 1 healthy\n",
		"history --server %|w":                 "web\t0 of 1 healthy\n",
		"watch --server %|zzz":                 "",
		"availability --server % web|":         "10.0.0.1:8080\tHEALTHY\n10.0.0.2:8080\tUNHEALTHY\n",
		"endpoints --server % web|10.0.0.2":    "10.0.0.2:8080\tUNHEALTHY\n",
		"endpoints --server % web 10.0.0.2:8|": "",
		"endpoints --server 127.0.0.1:1|":      "",
		"checkers distrust --server %|":        "checker-1\nchecker-2\n",
		"checkers trust --server %|checker-2":  "checker-2\n",
		"checkers judge --server % checker-1|": "",
		"checkers judge --server 127.0.0.1:1|": "",
		"endpoints --health|":                  "HEALTHY\nUNHEALTHY\nTIMEOUT\nUNKNOWN\nDEGRADED\nDRAINING\n",
		"endpoints -o|":                        "table\njson\ncsv\n",
		"clusters --color|":                    "auto\nalways\nnever\n",
		"simulate -o|":                         "table\njson\n",
		"bootstrap checker -o|":                "yaml\njson\n",
		"bootstrap|":                           "checker\tPrint the bootstrap of an Envoy that checks endpoints for hdsd\nclient\tPrint the bootstrap of a data plane: an Envoy that takes clusters and health from hdsd\n",
	} {
		before, begun, _ := strings.Cut(strings.ReplaceAll(args, "%", address), "|")
		var status int
		var out, errors, offered, directive string
		for try := 0; try < 10 && (try == 0 || offered != want); try++ { // a busy machine may take longer than a shell waits
			status, out, errors = hdsd(t, append(append([]string{"__complete"}, strings.Fields(before)...), begun)...)
			offered, directive, _ = strings.Cut(out, ":4\n")
		}
		if status != exitDone || offered != want || directive != "" {
			t.Errorf("%s offers %q (exit status %d), want %q; %s", args, out, status, want, errors)
		}
	}
}

// TestCompletionDoesNotKeepAShellWaiting completes from a server that says
// nothing.
func TestCompletionDoesNotKeepAShellWaiting(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	started := time.Now()
	status, out, _ := hdsd(t, "__complete", "endpoints", "--server", silent.Addr().String(), "")
	if took := time.Since(started); status != exitDone || out != ":4\n" || took > 10*completionTimeout {
		t.Errorf("exit status %d, %q after %v", status, out, took)
	}
}
