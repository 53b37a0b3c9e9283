package main

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
)

// tableBlock is how many rows are laid out together.
const tableBlock = 1000

// table prints aligned columns. It lays out a block of rows at a time, so that
// it needs little memory however many there are. A column that is empty in all
// rows of the blocks so far is left out; the header is printed again once it
// no longer is.
type table struct {
	to     io.Writer
	header []string
	rows   [][]string
	shown  []bool
	widths []int
	begun  bool
}

func newTable(to io.Writer, header []string) *table {
	t := &table{to: to, shown: make([]bool, len(header)), widths: make([]int, len(header))}
	for i, name := range header {
		t.header = append(t.header, strings.ToUpper(strings.ReplaceAll(name, "_", " ")))
		t.widths[i] = utf8.RuneCountInString(name)
	}
	return t
}

func (t *table) row(_ proto.Message, cells []string) error {
	t.rows = append(t.rows, cells)
	if len(t.rows) < tableBlock {
		return nil
	}
	return t.flush()
}

func (t *table) close() error {
	if !t.begun && len(t.rows) == 0 {
		for i := range t.shown {
			t.shown[i] = true
		}
		return t.print([][]string{t.header})
	}
	return t.flush()
}

func (t *table) flush() error {
	before := slices.Clone(t.shown)
	for _, cells := range t.rows {
		for i, cell := range cells {
			t.shown[i] = t.shown[i] || cell != ""
			for line := range strings.SplitSeq(cell, "\n") {
				t.widths[i] = max(t.widths[i], utf8.RuneCountInString(line))
			}
		}
	}
	rows := t.rows
	if !t.begun || !slices.Equal(before, t.shown) {
		rows = slices.Insert(rows, 0, t.header)
	}
	t.begun, t.rows = true, nil
	return t.print(rows)
}

func (t *table) print(rows [][]string) error {
	out := bufio.NewWriter(t.to)
	for _, cells := range rows {
		t.printRow(out, cells)
	}
	return out.Flush()
}

// printRow prints a row, in several lines where a cell has several.
func (t *table) printRow(out *bufio.Writer, cells []string) {
	split, height := make([][]string, len(cells)), 1
	for i, cell := range cells {
		if cell == "" {
			cell = "-"
		}
		split[i] = strings.Split(cell, "\n")
		height = max(height, len(split[i]))
	}
	for line := range height {
		gap := 0 // spaces owed to the columns before
		for i := range cells {
			if !t.shown[i] {
				continue
			}
			text := ""
			if line < len(split[i]) {
				text = split[i][line]
			}
			if text != "" { // errors show when out is flushed
				_, _ = out.WriteString(strings.Repeat(" ", gap) + text)
				gap = 0
			}
			gap += t.widths[i] - utf8.RuneCountInString(text) + 2
		}
		_ = out.WriteByte('\n')
	}
}
