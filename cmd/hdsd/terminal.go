package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// now is the clock; tests stop it.
var now = time.Now

// screen is where tables are shown.
type screen struct {
	width  func() int // columns it has, 0 for any number of them
	colour bool
}

// screenOf tells what can be shown: all in one line and without colour where
// nobody looks, unless the flag --color says otherwise.
func screenOf(to io.Writer, colour string) (screen, error) {
	s := screen{width: func() int { return 0 }}
	switch colour {
	case "always":
		s.colour = true
	case "never":
	case "auto":
		s.colour = isTerminal(to) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	default:
		return s, usageError{fmt.Errorf("--color %q: want auto, always or never", colour)}
	}
	if isTerminal(to) {
		s.width = func() int {
			width, _, _ := term.GetSize(int(to.(*os.File).Fd())) // 0 where it does not tell
			return width
		}
	}
	return s, nil
}

// isTerminal tells whether people look at what is written.
func isTerminal(to io.Writer) bool {
	file, ok := to.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
