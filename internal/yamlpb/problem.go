package yamlpb

import (
	"cmp"
	"fmt"
	"slices"
)

// Problem is something wrong with a file, and how to put it right.
type Problem struct {
	File     string
	Line     int    // 0 where there is none
	Resource string // name of what is wrong, where it has one
	Field    string // path in proto names, as sources[0].config_source
	Message  string
	Warning  bool // nothing is refused because of it
}

// String gives "file:line: field: message".
func (p Problem) String() string {
	message := p.Message
	if p.Field != "" {
		message = p.Field + ": " + message
	}
	switch {
	case p.Line > 0:
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, message)
	case p.Resource != "":
		return p.Resource + ": " + message
	default:
		return p.File + ": " + message
	}
}

// Refused tells whether there is more among problems than warnings.
func Refused(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning })
}

// SortProblems puts problems in the order of their lines.
func SortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
}
