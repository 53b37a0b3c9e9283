package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"hdsd/internal/table"
)

const (
	width  = 80 // columns
	indent = 21 // columns before the text of an event
)

// styles are the colours of events by their subjects.
var styles = map[string]table.Style{
	"probe": table.Yellow, "votes": table.Yellow, "checker": table.Yellow, "checkers": table.Yellow,
	"EDS": table.Green, "traffic": table.Green, "hdsd": table.Red,
}

// narrator prints events, in lines of 80 columns.
type narrator struct {
	w       io.Writer
	screen  table.Screen
	started time.Time // of the scene
}

func newNarrator(w io.Writer) (narrator, error) {
	screen, err := table.ScreenOf(w, "auto")
	return narrator{w: w, screen: screen, started: time.Now()}, err
}

// step announces a preparation that may take a while.
func (n *narrator) step(format string, args ...any) {
	n.write("  • ", 4, fmt.Sprintf(format, args...))
}

// say prints a plain text.
func (n *narrator) say(format string, args ...any) {
	n.write("", 0, fmt.Sprintf(format, args...))
}

// command prints a command on a line of its own, so that it can be copied.
func (n *narrator) command(format string, args ...any) {
	fmt.Fprintf(n.w, "    "+format+"\n", args...)
}

// scene starts a scene; the clock starts at zero.
func (n *narrator) scene(format string, args ...any) {
	title := fmt.Sprintf(format, args...)
	fmt.Fprintf(n.w, "\n── %s %s\n", title, strings.Repeat("─", max(3, width-4-len(title))))
	n.started = time.Now()
}

// event prints an event as it is seen.
func (n *narrator) event(subject, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	style := styles[subject]
	if subject == "verdict" {
		style = table.Green
		if !strings.HasPrefix(text, "HEALTHY") && !strings.HasPrefix(text, "all") {
			style = table.Red
		}
	}
	n.write(fmt.Sprintf("  %5.2f s  %s ", time.Since(n.started).Seconds(), n.screen.Paint(style, fmt.Sprintf("%-8s", subject))), indent-1, text)
}

// write prints a text behind a head, and indents all lines but the first.
func (n *narrator) write(head string, indent int, text string) {
	fmt.Fprintf(n.w, "%s%s\n", head, strings.Join(table.Wrap(text, width-indent), "\n"+strings.Repeat(" ", indent)))
}
