package main

import (
	"bufio"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"
)

// tableBlock is how many rows are laid out together.
const tableBlock = 1000

// table prints aligned columns. It lays out a block of rows at a time, so that
// it needs little memory however many there are. A column that is empty in all
// rows of the blocks so far is left out; the header is printed again once it
// no longer is. What is wider than the screen is wrapped; on one too narrow
// even for that, each row is shown as a list of its cells.
type table struct {
	to      io.Writer
	screen  screen
	columns []column
	rows    [][]string
	begun   bool
}

// column is a column and how wide it has been so far.
type column struct {
	look
	shown        bool
	widest       int // of its lines
	word, finely int // its longest word, broken at spaces or finely
}

func newTable(to io.Writer, on screen, header []string) *table {
	t := &table{to: to, screen: on, columns: make([]column, len(header))}
	for i, name := range header {
		c := &t.columns[i]
		if c.look = looks[name]; c.title == "" {
			c.title = strings.ReplaceAll(name, "_", " ")
		}
		c.title = strings.ToUpper(c.title)
		c.measure(c.title)
		c.measure(c.reserve)
	}
	return t
}

// measure makes a column wide enough for a text.
func (c *column) measure(text string) {
	if len(text) <= c.finely {
		return // no character is wider than it has bytes
	}
	for line := range strings.SplitSeq(text, "\n") {
		c.widest = max(c.widest, textWidth(line))
	}
	c.word, c.finely = max(c.word, wordWidth(text, false)), max(c.finely, wordWidth(text, true))
}

func (t *table) row(_ proto.Message, cells []string) error {
	at := now()
	for i, cell := range cells {
		if c := &t.columns[i]; c.text != nil {
			cell = c.text(cell, at)
		}
		cells[i] = lines(cell)
	}
	t.rows = append(t.rows, cells)
	if len(t.rows) < tableBlock {
		return nil
	}
	return t.flush()
}

func (t *table) close() error {
	if !t.begun && len(t.rows) == 0 {
		for i := range t.columns {
			c := &t.columns[i]
			c.shown = !c.optional && !c.never
		}
		t.begun = true
		out := bufio.NewWriter(t.to)
		t.printHeader(out, t.widths())
		return out.Flush()
	}
	return t.flush()
}

func (t *table) flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	header := !t.begun
	for _, cells := range t.rows {
		for i, cell := range cells {
			if c := &t.columns[i]; cell != "" && !c.never {
				header = header || !c.shown
				c.shown = true
				c.measure(cell)
			}
		}
	}
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

// widths gives how wide the columns that are shown are on the screen, nil
// where they do not fit on it.
func (t *table) widths() []int {
	widest, word, finely := make([]int, 0, len(t.columns)), []int{}, []int{}
	for _, c := range t.columns {
		if c.shown {
			widest, word, finely = append(widest, c.widest), append(word, c.word), append(finely, c.finely)
		}
	}
	room := t.screen.width()
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
