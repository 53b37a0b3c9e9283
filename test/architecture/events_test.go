package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// logged is what the lines of one event have.
type logged struct{ Levels, Fields []string }

// levels are the calls that a line of the log begins with.
var levels = map[string]string{"Debug": "debug", "Info": "info", "Warn": "warn", "Error": "error", "WithLevel": "any"}

// TestEveryEventIsDocumented holds that each line of the log has the name of
// its event right after its level, which the bound on lines goes by, and that
// docs/reference/events.md says the same of all of them.
func TestEveryEventIsDocumented(t *testing.T) {
	if diff := cmp.Diff(documentedEvents(t), loggedEvents(t)); diff != "" {
		t.Errorf("docs/reference/events.md (-) and the code (+) differ:\n%s", diff)
	}
}

// documentedEvents reads the rows "| `event` | level | `field` `field` | ...".
func documentedEvents(t *testing.T) map[string]logged {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "reference", "events.md"))
	if err != nil {
		t.Fatal(err)
	}
	events := map[string]logged{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		name, isRow := strings.CutPrefix(cells[0], "| `")
		if !isRow {
			continue
		}
		if len(cells) != 5 || len(strings.Trim(cells[4], " |\n")) == 0 {
			t.Errorf("the row of %s is not event, level, fields, meaning and what to do", cells[0])
			continue
		}
		var fields []string
		if cells[2] != "none" {
			fields = strings.Fields(strings.ReplaceAll(cells[2], "`", ""))
		}
		slices.Sort(fields)
		events[strings.TrimSuffix(name, "`")] = logged{strings.Fields(cells[1]), fields}
	}
	return events
}

// loggedEvents reads the source.
func loggedEvents(t *testing.T) map[string]logged {
	t.Helper()
	events := map[string]logged{}
	for _, path := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, filepath.Join(root, "test")) {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			end := called(call)
			if !slices.Contains([]string{"Msg", "Msgf", "MsgFunc"}, end) && (end != "Send" || len(call.Args) > 0) {
				return true
			}
			names, line, ok := lineOf(file, call)
			if !ok {
				t.Errorf("%s: a line of the log that does not begin with its level and Str(\"event\", \"its_name\")", set.Position(call.Pos()))
			}
			for _, name := range names {
				events[name] = events[name].with(line)
			}
			return true
		})
	}
	return events
}

func (l logged) with(other logged) logged {
	union := func(a, b []string) []string {
		all := slices.Concat(a, b)
		slices.Sort(all)
		return slices.Compact(all)
	}
	return logged{union(l.Levels, other.Levels), union(l.Fields, other.Fields)}
}

// called is the name of the method that is called.
func called(call *ast.CallExpr) string {
	if selector, ok := call.Fun.(*ast.SelectorExpr); ok {
		return selector.Sel.Name
	}
	return ""
}

// lineOf follows the chain of calls that makes a line back to its level.
func lineOf(file *ast.File, last *ast.CallExpr) (events []string, line logged, ok bool) {
	for call := last; ; {
		selector, isMethod := call.Fun.(*ast.SelectorExpr)
		if !isMethod {
			return nil, logged{}, false
		}
		if level := levels[selector.Sel.Name]; level != "" {
			line.Levels = []string{level}
			if name := text(call, 2); name != "" { // of a limit.Pace
				events, line.Fields = []string{name}, append(line.Fields, "more")
			}
			return events, line, len(events) > 0
		}
		key := text(call, 0)
		if events = nil; key == "event" { // counts only where it is the first after the level
			events = namesOf(file, call)
		} else if call != last {
			switch selector.Sel.Name {
			case "Err":
				key = "error"
			case "EmbedObject": // the name of a cluster
				key = "cluster"
			}
			line.Fields = append(line.Fields, key)
		}
		if call, ok = selector.X.(*ast.CallExpr); !ok {
			return nil, logged{}, false
		}
	}
}

// namesOf gives the name in Str("event", name), or, where that is the first
// parameter of the function around it, those that the file's calls of it give.
func namesOf(file *ast.File, call *ast.CallExpr) (names []string) {
	if name := text(call, 1); name != "" {
		return []string{name}
	}
	for _, around := range file.Decls {
		function, ok := around.(*ast.FuncDecl)
		if !ok || call.Pos() < function.Pos() || call.Pos() > function.End() {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if other, ok := n.(*ast.CallExpr); ok && called(other) == function.Name.Name {
				names = append(names, text(other, 0))
			}
			return true
		})
	}
	return names
}

// text is an argument that is a string literal.
func text(call *ast.CallExpr, index int) string {
	if index >= len(call.Args) {
		return ""
	}
	literal, ok := call.Args[index].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	return strings.Trim(literal.Value, "`\"")
}
