package table

import (
	"strings"

	"hdsd/internal/printable"
)

// LineBreak separates the lines of a cell. No text of a coordinator has it, since
// that is UTF-8.
const LineBreak = "\xff"

// lines returns the lines of a cell, each printable.
func lines(cell string) string {
	if !strings.Contains(cell, LineBreak) {
		return printable.Text(cell)
	}
	parts := strings.Split(cell, LineBreak)
	for i, line := range parts {
		parts[i] = printable.Text(line)
	}
	return strings.Join(parts, "\n")
}
