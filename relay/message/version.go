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

// Unmark returns the version without its mark, and what the mark stands for. A version that
// has none is returned as it is.
func Unmark(version string) (original string, change uint64, marked bool) {
	at := strings.LastIndex(version, marker)
	if at < 0 {
		return version, 0, false
	}
	text, sum, ok := strings.Cut(version[at+len(marker):], ".")
	change, err := strconv.ParseUint(text, 36, 64)
	if !ok || err != nil || sum != checksum(version[:at], text) {
		return version, 0, false
	}
	return version[:at], change, true
}

// Original returns the version without its mark.
func Original(version string) string {
	version, _, _ = Unmark(version)
	return version
}

func checksum(version, change string) string {
	return strconv.FormatUint(xxhash.Sum64String(version+"\x00"+change)&0xffffffff, 36)
}
