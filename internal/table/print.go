package table

import (
	"bufio"
	"slices"
	"strings"
)

func (t *Table) printHeader(out *bufio.Writer, widths []int) {
	if widths == nil {
		return // each row of a list says it
	}
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.Title
	}
	t.printRow(out, widths, titles, false)
}

// printRow prints a row, in several lines where a cell has several.
func (t *Table) printRow(out *bufio.Writer, widths []int, cells []string, styled bool) {
	var lines [][]string // of each column that is shown
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
				writeStyled(out, strings.Repeat(" ", padding), text, styles[i])
				padding = 0
			}
			padding += widths[i] - TextWidth(text) + gap
		}
		_ = out.WriteByte('\n') // errors show when out is flushed
	}
}

// printList prints a row as a list of its cells.
func (t *Table) printList(out *bufio.Writer, cells []string) {
	label := 0
	for _, c := range t.columns {
		label = max(label, TextWidth(c.Title))
	}
	for i, cell := range cells {
		c := &t.columns[i]
		if cell == "" || c.Never {
			continue
		}
		for line, text := range Wrap(cell, max(1, t.screen.Width()-label-gap)) {
			title := c.Title
			if line > 0 {
				title = ""
			}
			before := title + strings.Repeat(" ", label-TextWidth(title)+gap)
			writeStyled(out, before, text, t.styleOf(c, cell, true))
			_ = out.WriteByte('\n') // errors show when out is flushed
		}
	}
	_ = out.WriteByte('\n')
}

func (t *Table) styleOf(c *column, cell string, styled bool) Style {
	if !styled || !t.screen.Colour || c.Style == nil || slices.Contains([]string{"", "-"}, cell) {
		return Plain
	}
	return c.Style(cell)
}

func writeStyled(out *bufio.Writer, before, text string, s Style) {
	end := ""
	if s != Plain {
		end = reset
	}
	_, _ = out.WriteString(before + string(s) + text + end) // errors show when out is flushed
}
