package files

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

const (
	suffix = ".pb"

	// longestName bounds the bytes of a name. Most filesystems allow 255; while a file is
	// written, its name is longer.
	longestName = 200
)

// Name returns the file name of an assignment. Letters, digits and most marks stand for
// themselves, others are escaped as in URLs (a / is %2F). A name that becomes too long
// ends in a hash.
func Name(assignment string) string {
	name := url.PathEscape(assignment)
	if strings.HasPrefix(name, ".") {
		name = "%2E" + name[1:] // or it would be hidden
	}
	if len(name) > longestName {
		hash := sha256.Sum256([]byte(assignment))
		sum := "%" + hex.EncodeToString(hash[:16]) // longer than an escape, which has three characters
		name = name[:longestName-len(sum)] + sum
	}
	return name + suffix
}
