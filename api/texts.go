package api

import (
	"slices"
	"sync"
)

// Texts of so many bytes are written to memory that is used again. It would take the collector
// and the system longer to give that back and forth than to write the text.
const (
	longText  = 1 << 20
	largeText = 32 << 20 // not of more, so that what is kept is bounded
)

// texts has the memory of long texts that were sent. The collector empties it.
var texts sync.Pool

// withRoom returns a text with room for more bytes.
func withRoom(text []byte, more int) []byte {
	size := len(text) + more
	if size <= cap(text) || size < longText || size > largeText {
		return slices.Grow(text, more)
	}
	kept, _ := texts.Get().(*[]byte)
	switch {
	case kept == nil || cap(*kept) < size:
		return slices.Grow(text, more)
	case cap(*kept) > 2*size: // whoever reads this text slowly would keep too much
		texts.Put(kept)
		return slices.Grow(text, more)
	}
	return append((*kept)[:0], text...)
}

// keepText takes the memory of a text that nobody reads any more.
func keepText(text []byte) {
	if cap(text) >= longText && cap(text) <= largeText {
		texts.Put(&text)
	}
}
