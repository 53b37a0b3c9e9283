package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// largest is how many bytes the program may have.
const largest = 48_000_000

// TestTwoBuildsAreTheSame builds one commit twice, in folders of their own. The second build
// takes packages from the cache only if they do not depend on their folder. With BUILDS=cold,
// it compiles all packages again.
func TestTwoBuildsAreTheSame(t *testing.T) {
	var sums [2]string
	for i := range sums {
		folder := filepath.Join(t.TempDir(), strings.Repeat("deeper/", i), "clone")
		if _, err := output("../..", nil, "git", "clone", "--quiet", ".", folder); err != nil {
			t.Fatal(err)
		}
		if i == 1 && os.Getenv("BUILDS") == "cold" {
			t.Setenv("GOCACHE", t.TempDir())
		}
		out := t.TempDir()
		if err := release(folder, out, []platform{{"linux", "amd64"}}); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		if sums[i] = string(content); i == 0 {
			look(t, out)
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("two builds of one commit differ:\n%s%s", sums[0], sums[1])
	}
}

// look looks into the archive in a folder.
func look(t *testing.T, folder string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.tar.gz"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("archives: %v, %v", paths, err)
	}
	content, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	files := unpack(t, content)
	for _, name := range []string{"hdsd", "LICENSE", "README.md", "SECURITY.md", "THIRD_PARTY_LICENSES", "docs/man/hdsd.1"} {
		if len(files[name]) == 0 {
			t.Errorf("the archive has no %s", name)
		}
	}
	if size := len(files["hdsd"]); size > largest {
		t.Errorf("hdsd has %d bytes, more than %d: what does it link newly?", size, largest)
	}
	var bill cdx.BOM
	if err := json.Unmarshal(files["sbom.cdx.json"], &bill); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, c := range *bill.Components {
		listed[c.Name] = true
		if !bytes.Contains(files["THIRD_PARTY_LICENSES"], []byte(c.Name+" "+c.Version)) {
			t.Errorf("%s has no licence in the archive", c.Name)
		}
	}
	for _, name := range []string{"google.golang.org/grpc", "go.etcd.io/bbolt", "github.com/rs/zerolog", "preact", "htm", "@tanstack/virtual-core"} {
		if !listed[name] {
			t.Errorf("the bill of materials lacks %s", name)
		}
	}
}

// unpack gives the files of an archive, without its folder.
func unpack(t *testing.T, packed []byte) map[string][]byte {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(plain); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		if files[name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLicensesAreNamed(t *testing.T) {
	for license, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004\n":                                                        "Apache-2.0",
		"Permission is hereby granted, free of charge, to any person\nobtaining a copy":                         "MIT",
		"Redistributions in binary form must reproduce the above\ncopyright notice\nNeither the name of Google": "BSD-3-Clause",
		"Redistributions in binary form must reproduce the above\ncopyright notice":                             "BSD-2-Clause",
		"> Redistributions in binary form must\n> reproduce the above copyright notice":                         "BSD-2-Clause",
		"GNU AFFERO GENERAL PUBLIC LICENSE":                                                                     "",
		"":                                                                                                      "",
	} {
		if got := identify(license); got != want {
			t.Errorf("%q is named %q, want %q", license, got, want)
		}
	}
}
