package table

import (
	"strconv"
	"strings"
	"unicode"
)

// LineBreak separates the lines of a cell. No text of a coordinator has it, since
// that is UTF-8.
const LineBreak = "\xff"

// lines gives the lines of a cell, each printable.
func lines(cell string) string {
	if !strings.Contains(cell, LineBreak) {
		return Printable(cell)
	}
	all := strings.Split(cell, LineBreak)
	for i, line := range all {
		all[i] = Printable(line)
	}
	return strings.Join(all, "\n")
}

// Printable writes as an escape what would move the cursor or turn the direction of
// writing.
func Printable(cell string) string {
	const joiner = '\u200d' // of emoji
	control := func(r rune) bool { return !unicode.IsPrint(r) && r != joiner }
	if strings.IndexFunc(cell, control) < 0 {
		return cell
	}
	var out strings.Builder
	for _, r := range cell {
		if control(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			out.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}
