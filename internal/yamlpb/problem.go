package yamlpb

import (
	"cmp"
	"fmt"
	"slices"
)

// Problem is a fault in a file, and how to fix it.
type Problem struct {
	File     string
	Line     int    // 0 if unknown
	Resource string // name of the faulty resource, if it has one
	Field    string // path in proto names, such as sources[0].config_source
	Message  string
	Warning  bool // nothing is refused because of it
}

// String formats p as "file:line: field: message".
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

// Refused reports whether any problem is more than a warning.
func Refused(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning })
}

// SortProblems sorts problems by line.
func SortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
}
