package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNamedTestsExist: a test that a document names with its package is in that
// package, and docs/operations/reliability.md names each test with its package.
func TestNamedTestsExist(t *testing.T) {
	declared := declaredTests(t)
	span := regexp.MustCompile("`(?:([a-z0-9/]+)\\.)?((?:Test|Fuzz)[A-Z]\\w*)`")
	named := 0
	for _, d := range documents(t) {
		for at, line := range d.prose {
			for _, found := range span.FindAllStringSubmatch(line, -1) {
				folder, test := found[1], found[2]
				switch {
				case folder == "" && d.path != "docs/operations/reliability.md":
				case folder == "":
					t.Errorf("%s:%d names %s without its package", d.path, at+1, test)
				case !declared[folder+"."+test]:
					t.Errorf("%s:%d names %s.%s, which does not exist", d.path, at+1, folder, test)
				default:
					named++
				}
			}
		}
	}
	if named < 100 {
		t.Errorf("only %d tests were found in documents", named)
	}
}

// TestReliabilityIsOneTableASection: each row of docs/operations/reliability.md has
// its three cells and stands in its section once.
func TestReliabilityIsOneTableASection(t *testing.T) {
	const path = "docs/operations/reliability.md"
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	seen, before := map[string]bool{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch heading := strings.HasPrefix(line, "#"); {
		case heading && before != "" && strings.HasPrefix(before, "|"):
			t.Errorf("%s: no empty line before %q", path, line)
		case strings.HasPrefix(line, "|") && strings.Count(line, "|") != 4:
			t.Errorf("%s: a row without three cells: %q", path, line)
		case strings.HasPrefix(line, "|") && !isHead(line):
			if seen[line] {
				t.Errorf("%s has a row twice: %q", path, line)
			}
			seen[line] = true
		}
		before = line
	}
	if len(seen) < 50 {
		t.Errorf("only %d rows were found", len(seen))
	}
}

func isHead(row string) bool {
	return row == "| attack or fault | now | tests |" || row == "| --- | --- | --- |"
}

// declaredTests are the tests and fuzz targets that there are, as folder.TestX.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	function, all := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`), map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		for _, found := range function.FindAllSubmatch(source, -1) {
			all[filepath.ToSlash(folder)+"."+string(found[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
