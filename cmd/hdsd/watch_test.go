package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
)

// TestWatchShowsAtOnceAndEndsWhenInterrupted: nothing is held back, and to be
// interrupted is no failure.
func TestWatchShowsAtOnceAndEndsWhenInterrupted(t *testing.T) {
	for _, format := range []string{"table", "json", "csv"} {
		f := newFake()
		f.stay = true
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		reader, writer := io.Pipe()
		ended := make(chan int, 1)
		var errors bytes.Buffer
		address := serveFake(t, f)
		go func() {
			ended <- run(ctx, []string{"watch", "web", "10.0.0.2:8080", "--server", address, "-o", format}, writer, &errors)
			writer.Close()
		}()
		lines := bufio.NewScanner(reader)
		for changes := 0; changes < 2 && lines.Scan(); {
			if strings.Contains(lines.Text(), "transition") || strings.Contains(lines.Text(), `"from"`) {
				changes++
			}
		}
		interrupt()
		_, _ = io.Copy(io.Discard, reader)
		if status := <-ended; status != exitDone || errors.String() != "" {
			t.Errorf("-o %s: exit status %d, %s", format, status, &errors)
		}
		if r := f.watches[0]; r.GetCluster() != "web" || r.GetAddress() != "10.0.0.2:8080" {
			t.Errorf("asked for %v", r)
		}
	}
}

func TestWatchEnds(t *testing.T) {
	address := serveFake(t, newFake())
	if status, out, errors := hdsd(t, "watch", "--limit", "4", "-o", "json", "--server", address); status != exitDone || strings.Count(out, "\n") != 4 {
		t.Errorf("--limit 4: exit status %d, %s%s", status, out, errors)
	}
	for _, format := range []string{"table", "json", "csv"} {
		if status, out, errors := hdsd(t, "watch", "wbe", "-o", format, "--server", address); status != exitFailed || out != "" || !strings.Contains(errors, "did you mean web?") {
			t.Errorf("an unknown cluster: exit status %d, %q, %s", status, out, errors)
		}
	}
	if status, _, errors := hdsd(t, "watch", "ending", "--server", address); status != exitFailed || !strings.Contains(errors, "(hdsd is stopping): ask again") {
		t.Errorf("a coordinator that stops: exit status %d, %s", status, errors)
	}
}
