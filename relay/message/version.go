package message

import (
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// marker begins a mark: what is changed, and a checksum of version and change.
const marker = "~hdsd."

// Mark returns a version with a mark that stands for a change.
func Mark(version string, change uint64) string {
	text := strconv.FormatUint(change, 36)
	return version + marker + text + "." + checksum(version, text)
}

// Unmark returns the version without its mark. A version that has none is returned as it
// is.
func Unmark(version string) (original string, marked bool) {
	at := strings.LastIndex(version, marker)
	if at < 0 {
		return version, false
	}
	change, sum, ok := strings.Cut(version[at+len(marker):], ".")
	if !ok || sum != checksum(version[:at], change) {
		return version, false
	}
	return version[:at], true
}

func checksum(version, change string) string {
	return strconv.FormatUint(xxhash.Sum64String(version+"\x00"+change)&0xffffffff, 36)
}
