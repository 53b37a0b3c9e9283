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
	return string(appendMark(make([]byte, 0, 64), []byte(version), change))
}

func appendMark(to, version []byte, change uint64) []byte {
	start := len(to)
	to = append(to, version...)
	end := len(to)
	sum := xxhash.Sum64(strconv.AppendUint(append(to, 0), change, 36)[start:])
	to = strconv.AppendUint(append(to[:end], marker...), change, 36)
	return strconv.AppendUint(append(to, '.'), sum&0xffffffff, 36)
}

// Unmark returns the version without its mark, and what the mark stands for. A version that
// has none is returned as it is.
func Unmark(version string) (original string, change uint64, marked bool) {
	at := strings.LastIndex(version, marker)
	if at < 0 {
		return version, 0, false
	}
	text, _, _ := strings.Cut(version[at+len(marker):], ".")
	change, err := strconv.ParseUint(text, 36, 64)
	if err != nil || Mark(version[:at], change) != version {
		return version, 0, false
	}
	return version[:at], change, true
}

// Original returns the version without its mark.
func Original(version string) string {
	version, _, _ = Unmark(version)
	return version
}
