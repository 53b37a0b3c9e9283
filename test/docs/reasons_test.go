package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestQuotedReasonsExist: what varies apart, the code has the reasons that the guide to
// troubleshooting quotes in the first column of its tables.
func TestQuotedReasonsExist(t *testing.T) {
	varies := regexp.MustCompile(`[:;,…()%]|\bby\b|\bchecker-\d+|\bzone \S+|\bUTC\b|[\d-]+|\b[A-Z]{2,}\b`)
	var code strings.Builder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name == "gen" || name == "test" || strings.HasPrefix(name, ".") && path != root) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			code.Write(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const path = "docs/guides/troubleshooting.md"
	parts := 0
	for i, line := range strings.Split(text(t, path), "\n") {
		quoted := regexp.MustCompile("^\\| `([^`]+)`").FindStringSubmatch(line)
		if quoted == nil || !strings.Contains(quoted[1], " ") {
			continue
		}
		for _, part := range varies.Split(quoted[1], -1) {
			if part = strings.TrimSpace(part); len(part) < 8 {
				continue
			}
			parts++
			if !strings.Contains(code.String(), part) {
				t.Errorf("%s:%d quotes %q, which no code says", path, i+1, part)
			}
		}
	}
	if parts < 10 {
		t.Errorf("%s: only %d parts of reasons were found", path, parts)
	}
}
