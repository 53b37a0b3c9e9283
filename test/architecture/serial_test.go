package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestSerialPackagesStartNothing: the packages of test/serial and the files of tests with a build
// tag, which make test runs without the race detector, have nothing that it could find. Subtests
// may run in parallel.
func TestSerialPackagesStartNothing(t *testing.T) {
	serial := listed(t, "serial")
	for _, name := range pure {
		if !slices.Contains(serial, name) {
			t.Errorf("%s is pure, but not in test/serial", name)
		}
	}
	plain, _ := filepath.Glob(filepath.Join(root, "*", "*_test.go")) // the pattern is well formed
	deeper, _ := filepath.Glob(filepath.Join(root, "*", "*", "*_test.go"))
	for _, path := range append(plain, deeper...) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range file.Comments {
			if found := concurrency(file); found != "" && strings.HasPrefix(group.List[0].Text, "//go:build !race") {
				t.Errorf("%s has %s: it has to run with the race detector", path, found)
			}
		}
	}
	for _, name := range serial {
		paths, err := filepath.Glob(filepath.Join(root, name, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Errorf("%s: no such package (%v)", name, err)
		}
		for _, path := range paths {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			if found := concurrency(file); found != "" {
				t.Errorf("%s has %s: take the package out of test/serial", path, found)
			}
		}
	}
}

// TestCoveredPackagesAreTests: the packages of test/covered, which make test runs without the race
// detector too, have no code of hdsd, and are there.
func TestCoveredPackagesAreTests(t *testing.T) {
	for _, name := range listed(t, "covered") {
		paths, err := filepath.Glob(filepath.Join(root, name, "*_test.go"))
		if err != nil || len(paths) == 0 || !strings.HasPrefix(name, "test/") {
			t.Errorf("%s: no package of tests below test (%v)", name, err)
		}
	}
}

// listed returns the packages of a file in test.
func listed(t *testing.T, file string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "test", file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			names = append(names, line)
		}
	}
	return names
}

// concurrency returns what a file has that can run at the same time as something else, or
// empty.
func concurrency(file *ast.File) (found string) {
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		if slices.Contains([]string{"sync", "sync/atomic", "testing/synctest", "net/http", "os/exec"}, path) {
			return path
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.GoStmt:
			found = "a go statement"
		case *ast.ChanType, *ast.SelectStmt:
			found = "a channel"
		}
		return found == ""
	})
	return found
}
