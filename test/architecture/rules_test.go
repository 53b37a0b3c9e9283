package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testName is how docs/reference/xds.md names a test: its folder, its name, and a part.
var testName = regexp.MustCompile("`([a-z/]+)\\.((?:Test|Fuzz)[A-Za-z0-9_]+)(?:/[^`]*)?`")

// TestEachRuleIsHeldByATest: each row of docs/reference/xds.md about a rule names tests, and
// all that it names are there.
func TestEachRuleIsHeldByATest(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "reference", "xds.md"))
	if err != nil {
		t.Fatal(err)
	}
	there, ruled, rows := map[string]bool{}, false, 0
	for line := range strings.Lines(string(text)) {
		named := testName.FindAllStringSubmatch(line, -1)
		for _, name := range named {
			there[name[1]+"."+name[2]] = declared(t, name[1], name[2])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			ruled = false
		case strings.HasPrefix(line, "| rule | test |"):
			ruled = true
		case ruled && !strings.HasPrefix(line, "| ---"):
			if rows++; len(named) == 0 {
				t.Errorf("no test holds this rule: %s", line)
			}
		}
	}
	for name, found := range there {
		if !found {
			t.Errorf("docs/reference/xds.md names %s, which is not there", name)
		}
	}
	if rows < 100 {
		t.Errorf("%d rules are found", rows)
	}
}

// declared tells whether a folder's tests have a function.
func declared(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
