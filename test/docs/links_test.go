package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var target = regexp.MustCompile(`\]\(([^)\s]*)\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	all := documents(t)
	byPath := map[string]*document{}
	for _, d := range all {
		byPath[d.path] = d
	}
	links := 0
	for _, d := range all {
		for i, line := range d.prose {
			for _, found := range target.FindAllStringSubmatch(span.ReplaceAllString(line, ""), -1) {
				if strings.Contains(found[1], "://") {
					continue
				}
				links++
				if wrong := follow(d, byPath, found[1]); wrong != "" {
					t.Errorf("%s:%d: %s", d.path, i+1, wrong)
				}
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}

// follow says what is wrong with a link.
func follow(from *document, byPath map[string]*document, link string) string {
	name, anchor, _ := strings.Cut(link, "#")
	path := from.path
	if name != "" {
		path = filepath.ToSlash(filepath.Join(filepath.Dir(from.path), name))
	}
	if _, err := os.Stat(filepath.Join(root, path)); err != nil {
		return "the link leads to " + path + ", which does not exist"
	}
	if to := byPath[path]; anchor != "" && to != nil && !to.anchors()[anchor] {
		return path + " has no heading #" + anchor
	}
	return ""
}

// columns is how long a line may be, tables and the addresses of links apart.
const columns = 120

func TestLinesAreShort(t *testing.T) {
	for _, d := range documents(t) {
		if d.generated() || d.path == "CHANGELOG.md" {
			continue
		}
		for _, i := range d.wideLines() {
			t.Errorf("%s:%d has more than %d columns", d.path, i+1, columns)
		}
	}
}

// wideLines lists the lines that are too long.
func (d *document) wideLines() (wide []int) {
	for i, line := range d.lines {
		isTable := strings.HasPrefix(strings.TrimLeft(line, " "), "|")
		if !isTable && utf8.RuneCountInString(target.ReplaceAllString(line, "]")) > columns {
			wide = append(wide, i)
		}
	}
	return wide
}
