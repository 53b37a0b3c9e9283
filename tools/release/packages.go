package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// npmPackage is one that the page bundles.
type npmPackage struct {
	name, version, license string
	sum                    string // SHA-512 of its archive, as hexadecimal
	text                   string // of its licence
}

// reference is its package URL.
func (p *npmPackage) reference() string {
	return "pkg:npm/" + strings.Replace(p.name, "@", "%40", 1) + "@" + p.version
}

// titleOfPackage begins the licence of a package in page/dist/licences.txt: name, version, licence.
var titleOfPackage = regexp.MustCompile(`^(\S+) (\S+) \((\S+)\)\n`)

// packagesOf reads what the page bundles: the licences that its build left beside it, and the sums
// of its lock file.
func packagesOf(root string) (all []npmPackage, err error) {
	const licences, lock = "page/dist/licences.txt", "page/package-lock.json"
	texts, err := os.ReadFile(filepath.Join(root, licences))
	if err != nil {
		return nil, err
	}
	locked, err := os.ReadFile(filepath.Join(root, lock))
	if err != nil {
		return nil, err
	}
	var sums struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	if err := json.Unmarshal(locked, &sums); err != nil {
		return nil, fmt.Errorf("%s: %w", lock, err)
	}
	for part := range strings.SplitSeq(string(texts), "\n"+strings.Repeat("-", 80)+"\n\n") {
		title := titleOfPackage.FindStringSubmatch(part)
		if title == nil {
			return nil, fmt.Errorf("%s: %.40q names no package: run make page", licences, part)
		}
		p := npmPackage{name: title[1], version: title[2], license: title[3], text: part[len(title[0]):]}
		known := sums.Packages["node_modules/"+p.name]
		encoded, ok := strings.CutPrefix(known.Integrity, "sha512-")
		sum, err := base64.StdEncoding.DecodeString(encoded)
		if known.Version != p.version || !ok || err != nil {
			return nil, fmt.Errorf("%s has %s %s, and %s version %q with the sum %q: run make page", licences, p.name, p.version, lock, known.Version, known.Integrity)
		}
		p.sum = hex.EncodeToString(sum)
		all = append(all, p)
	}
	return all, nil
}
