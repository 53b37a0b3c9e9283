package table

import (
	"bufio"
	"slices"
	"strings"
)

func (t *Table) printHeader(w *bufio.Writer, widths []int) {
	if widths == nil {
		return // each row of a list says it
	}
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.Title
	}
	t.printRow(w, widths, titles, false)
}

// printRow prints a row, in several lines where a cell has several.
func (t *Table) printRow(w *bufio.Writer, widths []int, cells []string, styled bool) {
	var lines [][]string // of each shown column
	var styles []Style
	height := 1
	for i, cell := range cells {
		c := &t.columns[i]
		if !c.shown {
			continue
		}
		if cell == "" {
			cell = "-"
		}
		lines = append(lines, Wrap(cell, widths[len(lines)]))
		styles = append(styles, t.styleOf(c, cell, styled))
		height = max(height, len(lines[len(lines)-1]))
	}
	for line := range height {
		padding := 0 // spaces after the columns before
		for i := range lines {
			text := ""
			if line < len(lines[i]) {
				text = lines[i][line]
			}
			if text != "" {
				writeStyled(w, strings.Repeat(" ", padding), text, styles[i])
				padding = 0
			}
			padding += widths[i] - TextWidth(text) + gap
		}
		_ = w.WriteByte('\n') // errors show at the flush
	}
}

// printList prints a row as a list of its cells.
func (t *Table) printList(w *bufio.Writer, cells []string) {
	label := 0
	for _, c := range t.columns {
		label = max(label, TextWidth(c.Title))
	}
	for i, cell := range cells {
		c := &t.columns[i]
		if cell == "" || c.Hidden {
			continue
		}
		for line, text := range Wrap(cell, max(1, t.screen.Width()-label-gap)) {
			title := c.Title
			if line > 0 {
				title = ""
			}
			before := title + strings.Repeat(" ", label-TextWidth(title)+gap)
			writeStyled(w, before, text, t.styleOf(c, cell, true))
			_ = w.WriteByte('\n') // errors show at the flush
		}
	}
	_ = w.WriteByte('\n')
}

func (t *Table) styleOf(c *column, cell string, styled bool) Style {
	if !styled || !t.screen.Colour || c.Style == nil || slices.Contains([]string{"", "-"}, cell) {
		return Plain
	}
	return c.Style(cell)
}

func writeStyled(w *bufio.Writer, before, text string, s Style) {
	end := ""
	if s != Plain {
		end = reset
	}
	_, _ = w.WriteString(before + string(s) + text + end) // errors show at the flush
}
