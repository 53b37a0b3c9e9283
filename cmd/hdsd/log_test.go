package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestLevelsAndFormatsOfTheLog(t *testing.T) {
	tests := []struct {
		level, format string
		lines         int
		begins        string
	}{
		{"debug", "json", 4, `{"level":"debug","event":"e",`},
		{"info", "json", 3, `{"level":"info","event":"e",`},
		{"warn", "json", 2, `{"level":"warn","event":"e",`},
		{"error", "json", 1, `{"level":"error","event":"e",`},
		{"warn", "text", 2, ""},
	}
	for _, test := range tests {
		t.Run(test.level+" "+test.format, func(t *testing.T) {
			var out bytes.Buffer
			flags := logFlags{test.level, test.format}
			log, err := flags.logger(&out)
			if err != nil {
				t.Fatal(err)
			}
			log.Debug().Str("event", "e").Int("n", 1).Msg("said")
			log.Info().Str("event", "e").Int("n", 1).Msg("said")
			log.Warn().Str("event", "e").Int("n", 1).Msg("said")
			log.Error().Str("event", "e").Int("n", 1).Msg("said")
			if n := strings.Count(out.String(), "\n"); n != test.lines || !strings.HasPrefix(out.String(), test.begins) {
				t.Errorf("%d lines, want %d: %s", n, test.lines, out.String())
			}
			if test.format == "json" != json.Valid(bytes.SplitN(out.Bytes(), []byte("\n"), 2)[0]) {
				t.Errorf("as %s: %s", test.format, out.String())
			}
			if test.format == "text" && (strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), "event=e")) {
				t.Errorf("without a terminal: %q", out.String())
			}
		})
	}
}

func TestUnknownLevelAndFormat(t *testing.T) {
	for _, level := range []string{"", "loud", "trace", "fatal", "disabled", "3", "INFO "} {
		flags := logFlags{level, "json"}
		if _, err := flags.logger(os.Stderr); err == nil || !strings.Contains(err.Error(), "want debug, info, warn or error") {
			t.Errorf("--log-level %q: %v", level, err)
		}
	}
	for _, format := range []string{"", "xml", "JSON"} {
		flags := logFlags{"info", format}
		if _, err := flags.logger(os.Stderr); err == nil || !strings.Contains(err.Error(), "want json or text") {
			t.Errorf("--log-format %q: %v", format, err)
		}
	}
}

// TestNobodyFillsTheLog has one event come far too often while others go on.
func TestNobodyFillsTheLog(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	l := newLimiter(&out, func() time.Time { return now })
	write := func(name string, times int) (written int) {
		t.Helper()
		out.Reset()
		for range times {
			if _, err := fmt.Fprintf(l, `{"level":"warn","event":%q,"error":"\"event\":\"x\""}`+"\n", name); err != nil {
				t.Fatal(err)
			}
		}
		return strings.Count(out.String(), `{"level":"warn","event":"`+name+`"`)
	}
	if n := write("often", 1000); n != lineBurst {
		t.Errorf("%d lines at once, want %d", n, lineBurst)
	}
	if n := write("seldom", 3); n != 3 {
		t.Errorf("%d of 3 lines of another event", n)
	}
	now = now.Add(time.Second)
	if n := write("often", 1000); n != lineRate-1 { // one tells what was left out
		t.Errorf("%d lines after a second, want %d", n, lineRate-1)
	}
	if want := fmt.Sprintf(`"event":"lines_left_out","of":"often","count":%d`, 1000-lineBurst); strings.Count(out.String(), want) != 1 {
		t.Errorf("no %s in %s", want, out.String())
	}
	now = now.Add(time.Second)
	write("seldom", 1)
	if want := fmt.Sprintf(`"of":"often","count":%d`, 1000-lineRate+1); !strings.Contains(out.String(), want) {
		t.Errorf("another event's line does not bring %s: %s", want, out.String())
	}
	now = now.Add(time.Hour)
	if n := write("often", 1000); n != lineBurst {
		t.Errorf("%d lines after an hour, want %d", n, lineBurst)
	}
}
