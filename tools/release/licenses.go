package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// text is one licence file of a module.
type text struct{ name, content string }

// known names a licence by what only its text says. The first match counts.
var known = []struct{ id, says string }{
	{"Apache-2.0", "apache license version 2.0, january 2004"},
	{"MPL-2.0", "mozilla public license version 2.0"},
	{"BSD-3-Clause", "neither the name of"},
	{"BSD-3-Clause", "may not be used to endorse or promote products"},
	{"BSD-2-Clause", "redistributions in binary form must reproduce the above copyright notice"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
}

// findLicense finds the licence files of a module. They may stand in a folder above the
// module's own, where several modules share a repository: Go packs them with each.
func (m *module) findLicense() error {
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !isLicense(e.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(m.dir, e.Name()))
		if err != nil {
			return err
		}
		m.texts = append(m.texts, text{e.Name(), string(content)})
		if id := identify(string(content)); m.license == "" {
			m.license = id
		}
	}
	if m.license == "" {
		return fmt.Errorf("%s@%s: no licence that licenses.go knows in %d files; look at it, and add it there if a release may have it", m.Path, m.Version, len(m.texts))
	}
	return nil
}

// isLicense reports whether a file has a licence, or a notice that goes with it.
func isLicense(name string) bool {
	name = strings.ToUpper(name)
	for _, start := range []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"} {
		if strings.HasPrefix(name, start) && !strings.HasSuffix(name, ".GO") {
			return true
		}
	}
	return false
}

// identify gives the SPDX identifier of a licence; empty if it is unknown.
func identify(license string) string {
	words := strings.FieldsFunc(strings.ToLower(license), func(r rune) bool { return unicode.IsSpace(r) || r == '>' })
	plain := strings.Join(words, " ")
	for _, k := range known {
		if strings.Contains(plain, k.says) {
			return k.id
		}
	}
	return ""
}

// licenses gives the texts of all modules and packages, one after the other.
func (l *linkage) licenses() ([]byte, error) {
	var all bytes.Buffer
	fmt.Fprintf(&all, "hdsd contains the following modules.\n")
	for _, m := range l.modules {
		fmt.Fprintf(&all, "\n%s\n%s %s (%s)\n", strings.Repeat("=", 80), m.Path, m.Version, m.license)
		for _, t := range m.texts {
			fmt.Fprintf(&all, "\n--- %s\n\n%s\n", t.name, strings.TrimRight(t.content, "\n"))
		}
	}
	fmt.Fprintf(&all, "\n%s\nIts page contains the following packages.\n", strings.Repeat("=", 80))
	for _, p := range l.packages {
		fmt.Fprintf(&all, "\n%s\n%s %s (%s)\n\n%s\n", strings.Repeat("=", 80), p.name, p.version, p.license, strings.TrimSpace(p.text))
	}
	return all.Bytes(), nil
}
