package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// document is one Markdown file.
type document struct {
	path   string   // from the root of the repository
	lines  []string // all of them
	prose  []string // the same, with the lines of code blocks empty
	blocks []block
}

// block is a fenced code block.
type block struct {
	language string
	line     int // of its first line in the file, counted from 1
	lines    []string
}

// documents reads every Markdown file of the repository.
func documents(t *testing.T) []*document {
	t.Helper()
	var all []*document
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name == "testdata" || name == "bin" || strings.HasPrefix(name, ".") && path != root) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			all = append(all, read(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("only %d documents were found", len(all))
	}
	return all
}

// read takes a file apart.
func read(t *testing.T, path string) *document {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		t.Fatal(err)
	}
	d := &document{path: filepath.ToSlash(name), lines: strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")}
	var open *block
	var indent string
	for i, line := range d.lines {
		trimmed := strings.TrimLeft(line, " ")
		language, isFence := strings.CutPrefix(trimmed, "```")
		switch {
		case isFence && open == nil:
			open, indent = &block{language: language, line: i + 2}, line[:len(line)-len(trimmed)]
		case isFence:
			d.blocks, open = append(d.blocks, *open), nil
		case open != nil:
			open.lines = append(open.lines, strings.TrimPrefix(line, indent))
		default:
			d.prose = append(d.prose, line)
			continue
		}
		d.prose = append(d.prose, "")
	}
	if open != nil {
		t.Errorf("%s:%d: the code block does not end", name, open.line)
	}
	return d
}

var (
	span    = regexp.MustCompile("`([^`]+)`")
	heading = regexp.MustCompile(`^#+ (.*)$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the names by which links lead to headings, as GitHub makes them.
func (d *document) anchors() map[string]bool {
	names := map[string]bool{}
	for _, line := range d.prose {
		found := heading.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		text := strings.ToLower(linked.ReplaceAllString(found[1], "$1"))
		name := strings.ReplaceAll(dropped.ReplaceAllString(text, ""), " ", "-")
		if names[name] {
			name += "-1"
		}
		names[name] = true
	}
	return names
}

// generated says which documents programs write.
func (d *document) generated() bool {
	switch d.path {
	case "docs/internals/judgement.md", "docs/internals/corpus.md", "docs/reference/fidelity.md":
		return true
	}
	return false
}
