package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// documents gives README.md and what is in docs/, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"../../docs/*.md", "../../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no documents: %v", err)
		}
		paths = append(paths, found...)
	}
	texts := map[string]string{}
	for _, path := range append(paths, "../../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	return texts
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)\s]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	for path, text := range documents(t) {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), found[1])); err != nil {
				t.Errorf("%s links to %s: %v", path, found[1], err)
			}
		}
	}
}

// A command is named in a span of code, and after a prompt.
var (
	code    = regexp.MustCompile("`[^`\n]+`|(?m:^\\$ .*$)")
	command = regexp.MustCompile("(?:^[`$ ]*|/)hdsd ([a-z]+)(?: ([a-z]+))?")
)

func TestCommandsThatAreNamedAreThere(t *testing.T) {
	root := newRoot(io.Discard, io.Discard)
	named := 0
	for path, text := range documents(t) {
		for _, span := range code.FindAllString(text, -1) {
			for _, words := range command.FindAllStringSubmatch(span, -1) {
				named++
				found, _, err := root.Find(words[1:2])
				if err != nil || found == root {
					t.Errorf("%s names %s, and there is no command %q", path, span, words[1])
					continue
				}
				if below, _, err := found.Find(words[2:]); words[2] != "" && found.HasSubCommands() && (err != nil || below == found) {
					t.Errorf("%s names %s, and there is no command %q of %s", path, span, words[2], words[1])
				}
			}
		}
	}
	if named < 30 {
		t.Errorf("only %d commands were found", named)
	}
}
