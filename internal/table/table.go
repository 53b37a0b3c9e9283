package table

import (
	"bufio"
	"io"
	"strings"
	"time"
)

// tableBlock is the number of rows that are laid out together.
const tableBlock = 1000

// Table prints aligned columns. It lays out a block of rows at a time, so that it
// needs little memory however many there are. It leaves out a column that is empty
// in all rows of the blocks so far, and prints the header again once it is not. It
// wraps what is wider than the screen. On a screen too narrow even for that, it
// prints each row as a list of its cells.
type Table struct {
	// Now is the clock. Tests stop it.
	Now func() time.Time

	// Whole tables leave out no column because of the width.
	Whole bool

	to      io.Writer
	screen  Screen
	columns []column
	rows    [][]string
	begun   bool
}

// column is a column and how wide it has been so far.
type column struct {
	Look
	shown        bool
	spared       bool // left out because of the width
	widest       int  // of its lines
	word, finely int  // its longest word, broken at spaces or finely
}

// New makes a table with these columns, which look as looks says by their names.
func New(to io.Writer, on Screen, header []string, looks map[string]Look) *Table {
	t := &Table{Now: time.Now, to: to, screen: on, columns: make([]column, len(header))}
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
	at := t.Now()
	for i, cell := range cells {
		if c := &t.columns[i]; c.Text != nil {
			cell = c.Text(cell, at)
		}
		cells[i] = lines(cell)
	}
	t.rows = append(t.rows, cells)
	if len(t.rows) < tableBlock {
		return nil
	}
	return t.Flush()
}

// Close prints what is held back, and the header if there were no rows.
func (t *Table) Close() error {
	if !t.begun && len(t.rows) == 0 {
		for i := range t.columns {
			c := &t.columns[i]
			c.shown = !c.Optional && !c.Never
		}
		t.begun = true
		out := bufio.NewWriter(t.to)
		t.printHeader(out, t.widths())
		return out.Flush()
	}
	return t.Flush()
}

// Flush prints what is held back.
func (t *Table) Flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	header := !t.begun
	for _, cells := range t.rows {
		for i, cell := range cells {
			if c := &t.columns[i]; cell != "" && !c.Never {
				header = header || !c.shown && !c.spared
				c.shown = !c.spared
				c.measure(cell)
			}
		}
	}
	header = t.spare() || header
	rows := t.rows
	t.begun, t.rows = true, nil
	out := bufio.NewWriter(t.to)
	widths := t.widths()
	if header {
		t.printHeader(out, widths)
	}
	for _, cells := range rows {
		if widths == nil {
			t.printList(out, cells)
			continue
		}
		t.printRow(out, widths, cells, true)
	}
	return out.Flush()
}

// spare leaves out columns until the others fit on a line, and tells whether it left out any.
func (t *Table) spare() (less bool) {
	room := t.screen.Width()
	for !t.Whole && room > 0 {
		width, most := -gap, (*column)(nil)
		for i := range t.columns {
			c := &t.columns[i]
			if !c.shown {
				continue
			}
			if width += c.widest + gap; c.Spare > 0 && (most == nil || c.Spare >= most.Spare) {
				most = c
			}
		}
		if width <= room || most == nil {
			return less
		}
		most.shown, most.spared, less = false, true, true
	}
	return less
}

// widths gives the width of each column that is shown; nil if they do not fit on
// the screen.
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
	for _, least := range [][]int{word, finely} {
		if widths, ok := fit(widest, least, room); ok {
			return widths
		}
	}
	return nil
}
