package table

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// gap is the space between two columns.
const gap = 2

// runeWidth returns the number of terminal columns that a character takes.
func runeWidth(r rune) int {
	if r < 0x300 { // nothing before is wide, nor combines
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// TextWidth returns the number of terminal columns that a line takes.
func TextWidth(line string) int {
	total := 0
	for _, r := range line {
		total += runeWidth(r)
	}
	return total
}

// mayBreakAfter has the characters after which a long word may be broken. Addresses and times
// have none of them.
const mayBreakAfter = "=,;/-"

// wordWidth returns the width of the longest word of a text. Words end at spaces and,
// if finely is set, wherever they may be broken.
func wordWidth(text string, finely bool) int {
	longest, word := 0, 0
	for _, r := range text {
		if r == ' ' || r == '\n' {
			word = 0
			continue
		}
		word += runeWidth(r)
		longest = max(longest, word)
		if finely && strings.ContainsRune(mayBreakAfter, r) {
			word = 0
		}
	}
	return longest
}

// fit narrows columns, the widest first and none below its least width, until all of
// them fit into room. It reports whether they do.
func fit(widths, minimums []int, room int) ([]int, bool) {
	widths = slices.Clone(widths)
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > room; total-- {
		widest := -1
		for i, w := range widths {
			if w > minimums[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return nil, false
		}
		widths[widest]--
	}
	return widths, true
}

// Wrap breaks a text into lines no wider than room, at spaces where it can.
func Wrap(text string, room int) []string {
	if len(text) <= room && !strings.Contains(text, "\n") { // no character is wider than it has bytes
		return []string{text}
	}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		for TextWidth(line) > room {
			index := breakPoint(line, room)
			lines = append(lines, strings.TrimRight(line[:index], " "))
			line = strings.TrimLeft(line[index:], " ")
		}
		lines = append(lines, line)
	}
	return lines
}

// breakPoint returns the length of the part of a line to show first: up to the last space that
// fits, else up to the last point where a word may be broken, else the maximum.
func breakPoint(line string, room int) int {
	space, soft, hard, used := 0, 0, 0, 0
	for i, r := range line {
		if r == ' ' && i > 0 {
			space = i
		}
		if used += runeWidth(r); used > room {
			break
		}
		hard = i + utf8.RuneLen(r)
		if strings.ContainsRune(mayBreakAfter, r) {
			soft = hard
		}
	}
	for _, index := range []int{space, soft, hard} {
		if index > 0 {
			return index
		}
	}
	_, first := utf8.DecodeRuneInString(line) // wider than room, but it has to be shown
	return first
}
