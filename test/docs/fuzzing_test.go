package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryFuzzTargetIsListed holds docs/internals/fuzzing.md to have each target in a row
// with its package, and no other.
func TestEveryFuzzTargetIsListed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/internals/fuzzing.md"))
	if err != nil {
		t.Fatal(err)
	}
	name, listed := regexp.MustCompile("`([^`]+)`"), map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, of := range name.FindAllStringSubmatch(cells[1], -1) {
			for _, target := range name.FindAllStringSubmatch(cells[2], -1) {
				listed[of[1]+"."+target[1]] = true
			}
		}
	}
	declared, found := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`), map[string]bool{}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range declared.FindAllSubmatch(source, -1) {
			found[string(m[1])] = true
			if target := filepath.ToSlash(folder) + "." + string(m[1]); !listed[target] {
				t.Errorf("docs/internals/fuzzing.md does not list %s", target)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for target := range listed {
		if _, of, _ := strings.Cut(target, "."); !found[of] {
			t.Errorf("docs/internals/fuzzing.md lists %s, which does not exist", target)
		}
	}
}
