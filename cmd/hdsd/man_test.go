package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestManPagesAreUpToDate compares docs/man with what would be written now.
func TestManPagesAreUpToDate(t *testing.T) {
	fresh := t.TempDir()
	if status, _, errors := hdsd(t, "man", fresh); status != exitDone {
		t.Fatal(errors)
	}
	want, have := pages(t, fresh), pages(t, filepath.Join("..", "..", "docs", "man"))
	if len(want) < 15 {
		t.Errorf("only %d pages", len(want))
	}
	for name, page := range want {
		_, description, _ := strings.Cut(page, ".SH DESCRIPTION\n")
		description, _, _ = strings.Cut(description, ".SH")
		_, short, _ := strings.Cut(page, " - ")
		short, _, _ = strings.Cut(short, "\n")
		if strings.TrimSpace(description) == short {
			t.Errorf("%s: the description says no more than the name", name)
		}
		if !strings.Contains(page, ".SH OPTIONS") || !strings.Contains(page, ".SH EXIT STATUS\n") {
			t.Errorf("%s lacks OPTIONS or EXIT STATUS", name)
		}
	}
	if diff := cmp.Diff(have, want); diff != "" {
		t.Errorf("docs/man is out of date; 'make generate' writes it anew (-have +want):\n%s", diff)
	}
}

// pages returns the files of a folder by name.
func pages(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[entry.Name()] = string(text)
	}
	return found
}
