package message

import (
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// marker begins a mark. The number of the change and a checksum of version and change follow it.
const marker = "~hdsd."

// Mark returns a version with a mark that stands for a change.
func Mark(version string, change uint64) string {
	return string(appendMark(make([]byte, 0, 64), []byte(version), change))
}

func appendMark(buffer, version []byte, change uint64) []byte {
	start := len(buffer)
	buffer = append(buffer, version...)
	end := len(buffer)
	sum := xxhash.Sum64(strconv.AppendUint(append(buffer, 0), change, 36)[start:])
	buffer = strconv.AppendUint(append(buffer[:end], marker...), change, 36)
	return strconv.AppendUint(append(buffer, '.'), sum&0xffffffff, 36)
}

// Unmark returns a version without its mark, and the change that the mark stands for. It returns a
// version without a mark as it is.
func Unmark(version string) (original string, change uint64, marked bool) {
	index := strings.LastIndex(version, marker)
	if index < 0 {
		return version, 0, false
	}
	number, _, _ := strings.Cut(version[index+len(marker):], ".")
	change, err := strconv.ParseUint(number, 36, 64)
	if err != nil || Mark(version[:index], change) != version {
		return version, 0, false
	}
	return version[:index], change, true
}

// Original returns a version without its mark.
func Original(version string) string {
	version, _, _ = Unmark(version)
	return version
}
