package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hdsd/internal/table"
)

// terminal returns both ends of a terminal of so many columns.
func terminal(t *testing.T, columns uint16) (screen, program *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return screen, program
}

// onTerminal runs a command on a terminal, and returns what is seen there.
func onTerminal(t *testing.T, columns uint16, args ...string) string {
	t.Helper()
	screen, program := terminal(t, columns)
	var seen bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&seen, screen) // ends with an error once the program's end is closed
	}()
	if status := run(t.Context(), args, program, program); status != exitDone {
		t.Errorf("%v: exit status %d", args, status)
	}
	program.Close()
	<-read
	screen.Close()
	return strings.ReplaceAll(seen.String(), "\r\n", "\n")
}

func TestTablesOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	args := []string{"endpoints", "--server", serveFake(t, newFake())}
	for _, columns := range []uint16{150, 90, 50} {
		seen := onTerminal(t, columns, args...)
		if !strings.Contains(seen, string(table.Red)+"UNHEALTHY"+"\x1b[0m") {
			t.Errorf("without colour on a terminal:\n%s", seen)
		}
		plain := strings.NewReplacer(string(table.Red), "", string(table.Green), "", string(table.Yellow), "", "\x1b[0m", "").Replace(seen)
		for line := range strings.Lines(plain) {
			if width := table.TextWidth(strings.TrimSuffix(line, "\n")); width > int(columns) {
				t.Errorf("on %d columns a line has %d: %s", columns, width, line)
			}
		}
	}
	for _, setting := range [][2]string{{"NO_COLOR", "1"}, {"TERM", "dumb"}} {
		t.Run(setting[0], func(t *testing.T) {
			t.Setenv(setting[0], setting[1])
			if seen := onTerminal(t, 150, args...); strings.Contains(seen, "\x1b") {
				t.Errorf("with %v there is colour: %q", setting, seen)
			}
			if seen := onTerminal(t, 150, append(args, "--color", "always")...); !strings.Contains(seen, "\x1b") {
				t.Errorf("a flag counts for less than %v", setting)
			}
		})
	}
	if seen := onTerminal(t, 150, append(args, "--color", "never")...); strings.Contains(seen, "\x1b") {
		t.Errorf("--color never: %q", seen)
	}
}

// TestAListOnATerminalEndsWithHowManyThereAre, and is paged if it is longer than the terminal.
func TestAListOnATerminalEndsWithHowManyThereAre(t *testing.T) {
	t.Setenv("PAGER", "sed s/^/paged:/")
	address := serveFake(t, bigFake(60))
	args := []string{"endpoints", "--color", "never", "--server", address}
	if seen := onTerminal(t, 80, append(args, "--unhealthy")...); !strings.HasSuffix(seen, "\n2 of 1,002\n") || strings.Contains(seen, "paged:") {
		t.Errorf("a short list is shown as\n%s", seen)
	}
	if seen := onTerminal(t, 80, args...); strings.Count(seen, "paged:") != 62 || !strings.HasSuffix(seen, "\npaged:60 of 1,002\n") {
		t.Errorf("a long list is shown as\n%s", seen)
	}
	if seen := onTerminal(t, 80, append(args, "--no-pager")...); strings.Contains(seen, "paged:") || strings.Count(seen, "\n") != 62 {
		t.Errorf("without a pager:\n%s", seen)
	}
	t.Setenv("PAGER", "head -1")
	if seen := onTerminal(t, 80, args...); !strings.HasPrefix(seen, "CLUSTER") || strings.Contains(seen, "hdsd:") {
		t.Errorf("where the reader leaves:\n%s", seen)
	}
	if _, out, _ := hdsd(t, args...); strings.Contains(out, "1,002") || strings.Contains(out, "paged:") {
		t.Errorf("in a pipe: %s", out)
	}
}
