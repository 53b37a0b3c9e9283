package table

import "time"

// Style is a colour, as an escape sequence.
type Style string

// The styles of cells.
const (
	Plain  Style = ""
	Red    Style = "\x1b[31m"
	Green  Style = "\x1b[32m"
	Yellow Style = "\x1b[33m"
	reset        = "\x1b[0m"
)

// Paint returns a text in a style, if the screen has colours.
func (s *Screen) Paint(style Style, text string) string {
	if !s.Colour || style == Plain {
		return text
	}
	return string(style) + text + reset
}

// Look is the format of a column. Cells hold values for programs; a table writes them for
// people.
type Look struct {
	Title string                                  // if empty, the column's name
	Text  func(cell string, now time.Time) string // if nil, the cell as it is
	Style func(cell string) Style                 // if nil, Plain

	Reserve  string // a text that always fits into the column
	Optional bool   // not shown if there are no rows at all
	Hidden   bool   // for programs, and too wide for people
	Spare    int    // above 0: omitted if rows do not fit on a line, the highest first
}
