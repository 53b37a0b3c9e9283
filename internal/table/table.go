package table

import (
	"bufio"
	"io"
	"strings"
	"time"
)

// tableBlock is the number of rows that are laid out together.
const tableBlock = 1000

// Table prints aligned columns. It lays out a block of rows at a time, so that it needs little
// memory for any number of rows. It omits a column that is empty in all rows of the blocks so
// far, and prints the header again once it is not. It wraps cells wider than the screen. On a
// screen too narrow even for that, it prints each row as a list of its cells.
type Table struct {
	// Now is the clock. Tests stop it.
	Now func() time.Time

	// Whole tables omit no column because of the width.
	Whole bool

	w       io.Writer
	screen  Screen
	columns []column
	rows    [][]string
	begun   bool
}

// column is a column and its width so far.
type column struct {
	Look
	shown        bool
	spared       bool // omitted because of the width
	widest       int  // of its lines
	word, finely int  // its longest word, broken at spaces or finely
}

// New makes a table with these columns, in the formats of looks by their names.
func New(w io.Writer, screen Screen, header []string, looks map[string]Look) *Table {
	t := &Table{Now: time.Now, w: w, screen: screen, columns: make([]column, len(header))}
	for i, name := range header {
		c := &t.columns[i]
		if c.Look = looks[name]; c.Title == "" {
			c.Title = strings.ReplaceAll(name, "_", " ")
		}
		c.Title = strings.ToUpper(c.Title)
		c.measure(c.Title)
		c.measure(c.Reserve)
	}
	return t
}

// measure makes a column wide enough for a text.
func (c *column) measure(text string) {
	if len(text) <= c.finely {
		return // no character is wider than it has bytes
	}
	for line := range strings.SplitSeq(text, "\n") {
		c.widest = max(c.widest, TextWidth(line))
	}
	c.word, c.finely = max(c.word, wordWidth(text, false)), max(c.finely, wordWidth(text, true))
}

// Row adds a row, one cell for each column. It may hold the row back until Flush or
// Close.
func (t *Table) Row(cells []string) error {
	now := t.Now()
	for i, cell := range cells {
		if c := &t.columns[i]; c.Text != nil {
			cell = c.Text(cell, now)
		}
		cells[i] = lines(cell)
	}
	t.rows = append(t.rows, cells)
	if len(t.rows) < tableBlock {
		return nil
	}
	return t.Flush()
}

// Close prints held rows, and the header if there were no rows.
func (t *Table) Close() error {
	if !t.begun && len(t.rows) == 0 {
		for i := range t.columns {
			c := &t.columns[i]
			c.shown = !c.Optional && !c.Hidden
		}
		t.begun = true
		w := bufio.NewWriter(t.w)
		t.printHeader(w, t.widths())
		return w.Flush()
	}
	return t.Flush()
}

// Flush prints held rows.
func (t *Table) Flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	header := !t.begun
	for _, cells := range t.rows {
		for i, cell := range cells {
			if c := &t.columns[i]; cell != "" && !c.Hidden {
				header = header || !c.shown && !c.spared
				c.shown = !c.spared
				c.measure(cell)
			}
		}
	}
	header = t.spare() || header
	rows := t.rows
	t.begun, t.rows = true, nil
	w := bufio.NewWriter(t.w)
	widths := t.widths()
	if header {
		t.printHeader(w, widths)
	}
	for _, cells := range rows {
		if widths == nil {
			t.printList(w, cells)
			continue
		}
		t.printRow(w, widths, cells, true)
	}
	return w.Flush()
}

// spare omits columns until the others fit on a line, and reports whether it omitted any.
func (t *Table) spare() (spared bool) {
	room := t.screen.Width()
	for !t.Whole && room > 0 {
		width, widest := -gap, (*column)(nil)
		for i := range t.columns {
			c := &t.columns[i]
			if !c.shown {
				continue
			}
			if width += c.widest + gap; c.Spare > 0 && (widest == nil || c.Spare >= widest.Spare) {
				widest = c
			}
		}
		if width <= room || widest == nil {
			return spared
		}
		widest.shown, widest.spared, spared = false, true, true
	}
	return spared
}

// widths returns the width of each shown column; nil if they do not fit on the screen.
func (t *Table) widths() []int {
	widest, word, finely := make([]int, 0, len(t.columns)), []int{}, []int{}
	for _, c := range t.columns {
		if c.shown {
			widest, word, finely = append(widest, c.widest), append(word, c.word), append(finely, c.finely)
		}
	}
	room := t.screen.Width()
	if room <= 0 {
		return widest
	}
	for _, minimums := range [][]int{word, finely} {
		if widths, ok := fit(widest, minimums, room); ok {
			return widths
		}
	}
	return nil
}
