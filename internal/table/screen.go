package table

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// Screen is where tables are shown.
type Screen struct {
	Width  func() int // in columns; 0 for no limit
	Colour bool
}

// ScreenOf gives the screen that a writer leads to. Color is always, never or auto:
// on a terminal, unless NO_COLOR is set. What is no terminal has no limit of width.
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
	if IsTerminal(to) {
		s.Width = func() int {
			width, _, _ := term.GetSize(int(to.(*os.File).Fd())) // 0 if it is unknown
			return width
		}
	}
	return s, nil
}

// IsTerminal reports whether a writer leads to a terminal.
func IsTerminal(to io.Writer) bool {
	file, ok := to.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
