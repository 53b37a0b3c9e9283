package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// platforms are those that a release is built for.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: release ROOT OUT")
		os.Exit(2)
	}
	if err := release(os.Args[1], os.Args[2], platforms); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release builds the module at root for some platforms, and writes the archives and
// their sums into the folder out.
func release(root, out string, these []platform) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	source, err := readSource(root)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, p := range these {
		name, packed, err := source.pack(p)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		if err := os.WriteFile(filepath.Join(out, name), packed, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(packed), name)
	}
	fmt.Print(sums.String())
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
