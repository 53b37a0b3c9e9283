package suggest

import "strings"

// longestName bounds the compared bytes: the work grows with its square.
const longestName = 64

// maxSuggestions bounds the suggested names.
const maxSuggestions = 3

// Nearest returns up to three candidates that differ least from a name, in their
// order. Case and underscores do not count, and part of a name is near the whole.
// Candidates that differ in more than a third of the name, or two characters, are
// not near.
func Nearest(name string, candidates []string) []string {
	if name == "" || len(name) > longestName {
		return nil
	}
	var nearest []string
	plain := fold(name)
	limit := max(2, len(name)/3)
	for _, candidate := range candidates {
		if candidate == "" || len(candidate) > longestName {
			continue
		}
		folded := fold(candidate)
		differences := Distance(plain, folded)
		if differences > 0 && otherWord(name, candidate) {
			continue
		}
		if strings.Contains(folded, plain) || strings.Contains(plain, folded) {
			differences = min(differences, 2)
		}
		if differences < limit {
			nearest, limit = nil, differences
		}
		if differences == limit {
			nearest = append(nearest, candidate)
		}
	}
	return nearest[:min(maxSuggestions, len(nearest))]
}

// otherWord reports whether one word of a name is another one in a candidate, not a mistyped
// one: icmp_health_check is not tcp_health_check.
func otherWord(name, candidate string) bool {
	words, otherWords := strings.Split(name, "_"), strings.Split(candidate, "_")
	if len(words) < 2 || len(words) != len(otherWords) {
		return false
	}
	for i, word := range words {
		if Distance(strings.ToLower(word), strings.ToLower(otherWords[i])) > max(1, len(word)/3) {
			return true
		}
	}
	return false
}

// DidYouMean returns ": did you mean A or B?" with the nearest candidates, or nothing if none is
// near.
func DidYouMean(name string, candidates []string) string {
	nearest := Nearest(name, candidates)
	if len(nearest) == 0 {
		return ""
	}
	return ": did you mean " + strings.Join(nearest, " or ") + "?"
}

func fold(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// Distance counts the characters to insert, remove, change or swap with the next
// that turn one word into another (optimal string alignment).
func Distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
