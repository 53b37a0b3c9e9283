package printable

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// joiner is part of emoji. It is invisible, and moves nothing.
const joiner = '\u200d'

// acts reports whether a character must not be shown directly.
func acts(r rune) bool { return r < ' ' || r >= 0x7f && r != joiner && !unicode.IsPrint(r) }

// Is reports whether a text is valid UTF-8 without control, bidirectional and other invisible
// characters.
func Is(text string) bool { return utf8.ValidString(text) && strings.IndexFunc(text, acts) < 0 }

// Text writes a text on one line, with escapes for the characters that Is refuses.
func Text(text string) string { return escape(text, acts) }

// Lines is Text that leaves line breaks.
func Lines(text string) string {
	return escape(text, func(r rune) bool { return r != '\n' && acts(r) })
}

func escape(text string, acts func(rune) bool) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, acts) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)): // no UTF-8
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case acts(r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Cell writes a text for a cell of a CSV file. A spreadsheet would evaluate a cell beginning
// with "=", "+", "-" or "@", so such a cell gets an apostrophe before it, unless it is a number.
func Cell(text string) string {
	text = Text(text)
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, " \u3000"))
	if !strings.ContainsRune("=+-@＝＋－＠", first) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}

// JSON writes a text of JSON with escapes for the characters that Is refuses, line breaks apart.
// It is equivalent to the text.
func JSON(text []byte) []byte {
	if bytes.IndexFunc(text, actsInJSON) < 0 {
		return text
	}
	encoded := make([]byte, 0, len(text)+64)
	for _, r := range string(text) {
		switch {
		case !actsInJSON(r):
			encoded = utf8.AppendRune(encoded, r)
		case r > 0xffff:
			high, low := surrogates(r)
			encoded = fmt.Appendf(encoded, `\u%04x\u%04x`, high, low)
		default:
			encoded = fmt.Appendf(encoded, `\u%04x`, r)
		}
	}
	return encoded
}

// actsInJSON leaves white space between values. Strings have no other character below
// a space.
func actsInJSON(r rune) bool { return r >= 0x7f && acts(r) }

// surrogates are the two halves by which JSON escapes characters beyond 16 bits.
func surrogates(r rune) (high, low rune) { return 0xd800 + (r-0x10000)>>10, 0xdc00 + (r-0x10000)&0x3ff }
