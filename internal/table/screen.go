package table

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Screen is a writer's capability to show tables.
type Screen struct {
	Width  func() int // in columns; 0 for no limit
	Colour bool
}

// ScreenOf returns the screen of a writer. Color is always, never or auto: on a terminal, unless
// NO_COLOR is set. The width is COLUMNS, else that of the terminal; other writers have no limit
// then.
func ScreenOf(w io.Writer, color string) (Screen, error) {
	s := Screen{Width: func() int { return 0 }}
	switch color {
	case "always":
		s.Colour = true
	case "never":
	case "auto":
		s.Colour = IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	default:
		return s, fmt.Errorf("--color %q: want auto, always or never", color)
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		s.Width = func() int { return columns }
	} else if IsTerminal(w) {
		s.Width = func() int {
			width, _, _ := term.GetSize(int(w.(*os.File).Fd())) // 0 if it is unknown
			return width
		}
	}
	return s, nil
}

// Height returns the lines of a writer's terminal; 0 if unknown.
func Height(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	_, height, _ := term.GetSize(int(file.Fd())) // 0 if it is no terminal
	return height
}

// IsTerminal reports whether a writer is a terminal.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
