package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// deciding lists the packages that decide beside those that are pure: they import messages and the
// store's values, too.
var deciding = []string{
	"machine", "replica", "replica/clusters", "catalog", "log", "log/batch", "internal/packed", "rollout", "ruling", "catalog/targets",
}

// TestWhatDecidesHasNoClock, nor a goroutine, a lock or a log.
func TestWhatDecidesHasNoClock(t *testing.T) {
	for _, name := range slices.Concat(pure, deciding) {
		paths, err := filepath.Glob(filepath.Join(root, name, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Errorf("%s: no such package (%v)", name, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			if found := concurrency(file); found != "" && found != "net/http" { // for its constants
				t.Errorf("%s has %s", path, found)
			}
			if found := surroundings(file); found != "" {
				t.Errorf("%s uses %s", path, found)
			}
		}
	}
}

// surroundings returns what a file uses of its surroundings, or empty.
func surroundings(file *ast.File) (found string) {
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		if slices.Contains([]string{"os", "log", "log/slog", "github.com/rs/zerolog"}, path) {
			return path
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		base, _ := selector.X.(*ast.Ident)
		clock := []string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "Sleep", "NewTimer", "NewTicker"}
		if base != nil && base.Name == "time" && slices.Contains(clock, selector.Sel.Name) {
			found = "time." + selector.Sel.Name
		}
		return true
	})
	return found
}
