package table

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Screen is where tables are shown.
type Screen struct {
	Width  func() int // in columns; 0 for no limit
	Colour bool
}

// ScreenOf gives the screen that a writer leads to. Color is always, never or auto:
// on a terminal, unless NO_COLOR is set. The width is COLUMNS, else that of the terminal;
// what is no terminal has no limit then.
func ScreenOf(to io.Writer, color string) (Screen, error) {
	s := Screen{Width: func() int { return 0 }}
	switch color {
	case "always":
		s.Colour = true
	case "never":
	case "auto":
		s.Colour = IsTerminal(to) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	default:
		return s, fmt.Errorf("--color %q: want auto, always or never", color)
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		s.Width = func() int { return columns }
	} else if IsTerminal(to) {
		s.Width = func() int {
			width, _, _ := term.GetSize(int(to.(*os.File).Fd())) // 0 if it is unknown
			return width
		}
	}
	return s, nil
}

// Height gives the lines of the terminal that a writer leads to; 0 if that is not known.
func Height(to io.Writer) int {
	file, ok := to.(*os.File)
	if !ok {
		return 0
	}
	_, height, _ := term.GetSize(int(file.Fd())) // 0 if it is no terminal
	return height
}

// IsTerminal reports whether a writer leads to a terminal.
func IsTerminal(to io.Writer) bool {
	file, ok := to.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
