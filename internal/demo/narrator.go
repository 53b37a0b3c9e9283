package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// narrator prints what happens, line by line.
type narrator struct {
	to      io.Writer
	started time.Time // of the scene
}

// step announces a preparation that may take a while.
func (n *narrator) step(format string, args ...any) {
	fmt.Fprintf(n.to, "  • %s\n", fmt.Sprintf(format, args...))
}

// say prints a plain line.
func (n *narrator) say(format string, args ...any) {
	fmt.Fprintf(n.to, format+"\n", args...)
}

// scene starts a scene; the clock starts at zero.
func (n *narrator) scene(format string, args ...any) {
	title := fmt.Sprintf(format, args...)
	fmt.Fprintf(n.to, "\n── %s %s\n", title, strings.Repeat("─", max(3, 74-len(title))))
	n.started = time.Now()
}

// event prints an event as it is seen.
func (n *narrator) event(what, format string, args ...any) {
	fmt.Fprintf(n.to, "  %5.2f s  %-8s %s\n", time.Since(n.started).Seconds(), what, fmt.Sprintf(format, args...))
}
