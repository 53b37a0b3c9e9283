package table

import (
	"strings"

	"hdsd/internal/printable"
)

// LineBreak separates the lines of a cell. No text of a coordinator has it, since
// that is UTF-8.
const LineBreak = "\xff"

// lines gives the lines of a cell, each printable.
func lines(cell string) string {
	if !strings.Contains(cell, LineBreak) {
		return printable.Text(cell)
	}
	all := strings.Split(cell, LineBreak)
	for i, line := range all {
		all[i] = printable.Text(line)
	}
	return strings.Join(all, "\n")
}
