package files

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

const (
	suffix = ".pb"

	// longestName is what most filesystems take in bytes, less what a name
	// gets while the file is written.
	longestName = 200
)

// Name is what the file of an assignment is called. Letters, digits and most
// marks stand for themselves, others as in URLs (a / is %2F). Of names that get
// too long by that, the end is a hash.
func Name(assignment string) string {
	name := url.PathEscape(assignment)
	if strings.HasPrefix(name, ".") {
		name = "%2E" + name[1:] // or it would be hidden
	}
	if len(name) > longestName {
		hash := sha256.Sum256([]byte(assignment))
		sum := "%" + hex.EncodeToString(hash[:16]) // no escape looks like that: it has three
		name = name[:longestName-len(sum)] + sum
	}
	return name + suffix
}
