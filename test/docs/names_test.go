package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNamedFilesExist: what a document puts into code and that begins with a folder
// of the repository is there. envoy/1.40.0 is a release of Envoy.
func TestNamedFilesExist(t *testing.T) {
	path := regexp.MustCompile(`^(?:\./)?([a-z]+)/([A-Za-z_.][A-Za-z0-9_./-]*)?$`)
	named := 0
	for _, d := range documents(t) {
		if d.path == "CHANGELOG.md" {
			continue
		}
		for _, c := range d.code() {
			for word := range strings.FieldsSeq(c.text) {
				found := path.FindStringSubmatch(strings.TrimRight(word, ".,;:"))
				if found == nil || !isFolder(found[1]) || found[1] == "bin" || found[1] == "data" {
					continue
				}
				named++
				if file := strings.TrimRight(word, ".,;:"); !exists(file) {
					t.Errorf("%s:%d names %s, which does not exist", d.path, c.line, file)
				}
			}
		}
	}
	if named < 50 {
		t.Errorf("only %d files were found", named)
	}
}

func isFolder(name string) bool {
	info, err := os.Stat(filepath.Join(root, name))
	return err == nil && info.IsDir()
}

// exists tells whether a file or a test of a folder is there: test/fleet.TestX
// names the folder.
func exists(name string) bool {
	name, _, _ = strings.Cut(name, ".Test")
	name, _, _ = strings.Cut(name, ".Fuzz")
	name, _, _ = strings.Cut(name, ".Benchmark")
	_, err := os.Stat(filepath.Join(root, name))
	return err == nil
}

// code is text in a document that is code.
type code struct {
	text string
	line int
}

// code lists the spans of code, and the commands of code blocks.
func (d *document) code() []code {
	var all []code
	for i, line := range d.prose {
		for _, found := range span.FindAllStringSubmatch(line, -1) {
			all = append(all, code{strings.ReplaceAll(found[1], `\|`, "|"), i + 1})
		}
	}
	for _, b := range d.blocks {
		for i, line := range b.lines {
			if b.language == "" || b.language == "sh" || strings.HasPrefix(line, "$ ") {
				all = append(all, code{strings.TrimPrefix(line, "$ "), b.line + i})
			}
		}
	}
	return all
}

// TestNamedCommandsExist holds what documents name to the man pages, which another
// test holds to the program.
func TestNamedCommandsExist(t *testing.T) {
	pages := manPages(t)
	call := regexp.MustCompile(`(?:^|[ |(/])hdsd ([a-z][^|;&)]*)`)
	named := 0
	for _, d := range documents(t) {
		if d.path == "CHANGELOG.md" {
			continue
		}
		for _, c := range d.code() {
			text, _, _ := strings.Cut(c.text, " # ")
			for _, found := range call.FindAllStringSubmatch(text, -1) {
				named++
				if wrong := pages.wrong(words(found[1])); wrong != "" {
					t.Errorf("%s:%d: `%s`: %s", d.path, c.line, c.text, wrong)
				}
			}
			if flag := words(c.text); strings.HasPrefix(c.text, "--") && !pages.anyHas(flag[0]) && !slices.Contains(foreign, flag[0]) {
				t.Errorf("%s:%d: no command has %s", d.path, c.line, flag[0])
			}
		}
	}
	if named < 100 {
		t.Errorf("only %d commands were found", named)
	}
}

// foreign are flags of other programs.
var foreign = []string{"--service-node", "--mode"}

// words cuts a command into its words; what is in quotes is one.
func words(text string) []string {
	return regexp.MustCompile(`"[^"]*"|'[^']*'|[^\s"']+`).FindAllString(text, -1)
}

// manual has the flags of each command, by its path: "override drain".
type manual map[string][]string

func manPages(t *testing.T) manual {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "docs", "man", "*.1"))
	if err != nil || len(paths) < 15 {
		t.Fatalf("%d man pages: %v", len(paths), err)
	}
	flag := regexp.MustCompile(`\\fB(--?[a-z-]+)\\fP`)
	pages := manual{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".1"), "-", " ")
		flags := []string{"--help", "-h"}
		for _, found := range flag.FindAllStringSubmatch(string(text), -1) {
			flags = append(flags, found[1])
		}
		pages[strings.TrimPrefix(strings.TrimPrefix(name, "hdsd"), " ")] = flags
	}
	pages["help"], pages["man"] = nil, nil
	return pages
}

// wrong says what is wrong with a command.
func (m manual) wrong(words []string) string {
	path, rest := words[0], words[1:]
	if _, ok := m[path]; !ok {
		return "there is no command " + path
	}
	for len(rest) > 0 {
		if _, ok := m[path+" "+rest[0]]; !ok {
			break
		}
		path, rest = path+" "+rest[0], rest[1:]
	}
	if len(rest) > 0 && m.isGroup(path) && regexp.MustCompile(`^[a-z]+$`).MatchString(rest[0]) {
		return "there is no command " + path + " " + rest[0]
	}
	for _, word := range rest {
		name, _, _ := strings.Cut(strings.Trim(word, "[],"), "=")
		if strings.HasPrefix(name, "-") && name != "-" && !strings.HasSuffix(name, "*") && !slices.Contains(m[path], name) {
			return path + " has no flag " + name
		}
	}
	return ""
}

// isGroup tells whether there are commands below one.
func (m manual) isGroup(path string) bool {
	for name := range m {
		if strings.HasPrefix(name, path+" ") {
			return true
		}
	}
	return false
}

func (m manual) anyHas(flag string) bool {
	name, _, _ := strings.Cut(strings.TrimRight(flag, ","), "=")
	if prefix, ok := strings.CutSuffix(name, "*"); ok {
		name = prefix + "ca"
	}
	for _, flags := range m {
		if slices.Contains(flags, name) {
			return true
		}
	}
	return false
}

// TestNamedTargetsExist: each "make X" is a target of the Makefile.
func TestNamedTargetsExist(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	target := regexp.MustCompile(`^make ([a-z]+)`)
	for _, d := range documents(t) {
		for _, c := range d.code() {
			if found := target.FindStringSubmatch(c.text); found != nil && !strings.Contains(string(makefile), "\n"+found[1]+":") {
				t.Errorf("%s:%d: the Makefile has no target %s", d.path, c.line, found[1])
			}
		}
	}
}
