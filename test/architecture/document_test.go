package architecture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheDocumentListsEachPackage: docs/architecture.md has a row for each package
// of the import table.
func TestTheDocumentListsEachPackage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for i, name := range strings.Split(cells[1], "`") {
			listed[name] = listed[name] || i%2 == 1
		}
	}
	for name := range mayImport {
		if !listed[name] {
			t.Errorf("docs/architecture.md has no row for %s", name)
		}
	}
}
