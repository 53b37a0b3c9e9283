package main

import (
	"bufio"
	"slices"
	"strings"
)

func (t *table) printHeader(out *bufio.Writer, widths []int) {
	if widths == nil {
		return // each row of a list says it
	}
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.title
	}
	t.printRow(out, widths, titles, false)
}

// printRow prints a row, in several lines where a cell has several.
func (t *table) printRow(out *bufio.Writer, widths []int, cells []string, styled bool) {
	var lines [][]string // of each column that is shown
	var styles []style
	height := 1
	for i, cell := range cells {
		c := &t.columns[i]
		if !c.shown {
			continue
		}
		if cell == "" {
			cell = "-"
		}
		lines = append(lines, wrap(cell, widths[len(lines)]))
		styles = append(styles, t.styleOf(c, cell, styled))
		height = max(height, len(lines[len(lines)-1]))
	}
	for line := range height {
		owed := 0 // spaces owed to the columns before
		for i := range lines {
			text := ""
			if line < len(lines[i]) {
				text = lines[i][line]
			}
			if text != "" {
				writeStyled(out, strings.Repeat(" ", owed), text, styles[i])
				owed = 0
			}
			owed += widths[i] - textWidth(text) + gap
		}
		_ = out.WriteByte('\n') // errors show when out is flushed
	}
}

// printList prints a row as a list of its cells.
func (t *table) printList(out *bufio.Writer, cells []string) {
	label := 0
	for _, c := range t.columns {
		label = max(label, textWidth(c.title))
	}
	for i, cell := range cells {
		c := &t.columns[i]
		if cell == "" || c.never {
			continue
		}
		for line, text := range wrap(cell, max(1, t.screen.width()-label-gap)) {
			title := c.title
			if line > 0 {
				title = ""
			}
			before := title + strings.Repeat(" ", label-textWidth(title)+gap)
			writeStyled(out, before, text, t.styleOf(c, cell, true))
			_ = out.WriteByte('\n') // errors show when out is flushed
		}
	}
	_ = out.WriteByte('\n')
}

func (t *table) styleOf(c *column, cell string, styled bool) style {
	if !styled || !t.screen.colour || c.style == nil || slices.Contains([]string{"", "-"}, cell) {
		return plain
	}
	return c.style(cell)
}

func writeStyled(out *bufio.Writer, before, text string, s style) {
	end := ""
	if s != plain {
		end = reset
	}
	_, _ = out.WriteString(before + string(s) + text + end) // errors show when out is flushed
}
