package main

import (
	"fmt"
	"io"

	"hdsd/internal/printable"
)

// say prints a text for people. Names in it, which come from others, cannot control a terminal.
func say(w io.Writer, format string, args ...any) {
	_, _ = io.WriteString(w, printable.Lines(fmt.Sprintf(format, args...))) // nobody looks at errors of a terminal
}

// sayLine is say for one line.
func sayLine(w io.Writer, line any) { say(w, "%v\n", line) }

// plural formats a number of things whose plural takes an s.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// bytesText formats a size for people.
func bytesText(n int64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%d KiB", (n+1<<10-1)>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
