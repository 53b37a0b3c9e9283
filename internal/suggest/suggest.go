package suggest

import "strings"

// longestName bounds what is compared, in bytes: the work grows with its square.
const longestName = 64

// most is how many names are suggested.
const most = 3

// Nearest gives up to three candidates that differ least from a name, in their
// order. Case and underscores do not count, and part of a name is near the whole.
// Candidates that differ in more than a third of the name, or two characters, are
// not near.
func Nearest(name string, candidates []string) []string {
	if name == "" || len(name) > longestName {
		return nil
	}
	var near []string
	plain := fold(name)
	least := max(2, len(name)/3)
	for _, candidate := range candidates {
		if candidate == "" || len(candidate) > longestName {
			continue
		}
		other := fold(candidate)
		differences := Distance(plain, other)
		if differences > 0 && otherWord(name, candidate) {
			continue
		}
		if strings.Contains(other, plain) || strings.Contains(plain, other) {
			differences = min(differences, 2)
		}
		if differences < least {
			near, least = nil, differences
		}
		if differences == least {
			near = append(near, candidate)
		}
	}
	return near[:min(most, len(near))]
}

// otherWord reports whether one word of a name is another one in a candidate, not a mistyped
// one: icmp_health_check is not tcp_health_check.
func otherWord(name, candidate string) bool {
	words, others := strings.Split(name, "_"), strings.Split(candidate, "_")
	if len(words) < 2 || len(words) != len(others) {
		return false
	}
	for i, word := range words {
		if Distance(strings.ToLower(word), strings.ToLower(others[i])) > max(1, len(word)/3) {
			return true
		}
	}
	return false
}

// DidYouMean writes ": did you mean A or B?" of the nearest candidates, nothing
// if none is near.
func DidYouMean(name string, candidates []string) string {
	near := Nearest(name, candidates)
	if len(near) == 0 {
		return ""
	}
	return ": did you mean " + strings.Join(near, " or ") + "?"
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
