package source

import "unicode/utf8"

// Match reports whether a name matches a glob: * stands for any run of characters,
// including none, and ? for one character.
func Match(glob, name string) bool {
	// The position of the latest *, and how much of name it matches so far.
	star, consumed := -1, 0
	g, n := 0, 0
	for n < len(name) {
		_, size := utf8.DecodeRuneInString(name[n:])
		switch {
		case g < len(glob) && glob[g] == '*':
			star, consumed = g, n
			g++
		case g < len(glob) && glob[g] == '?':
			g++
			n += size
		case g < len(glob) && glob[g] == name[n]:
			g++
			n++
		case star >= 0:
			_, skip := utf8.DecodeRuneInString(name[consumed:])
			consumed += skip
			g, n = star+1, consumed
		default:
			return false
		}
	}
	for g < len(glob) && glob[g] == '*' {
		g++
	}
	return g == len(glob)
}
