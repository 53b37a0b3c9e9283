package api

import (
	"slices"
	"sync"
)

// The sizes of texts whose memory is reused. For the collector and the system to release and
// allocate it would take longer than writing the text.
const (
	longText  = 1 << 20
	largeText = 32 << 20 // bounds the kept memory
)

// texts holds the memory of sent texts. The collector empties it.
var texts sync.Pool

// withRoom returns a text with room for more bytes.
func withRoom(text []byte, room int) []byte {
	size := len(text) + room
	if size <= cap(text) || size < longText || size > largeText {
		return slices.Grow(text, room)
	}
	kept, _ := texts.Get().(*[]byte)
	switch {
	case kept == nil || cap(*kept) < size:
		return slices.Grow(text, room)
	case cap(*kept) > 2*size: // a slow reader of this text would hold too much
		texts.Put(kept)
		return slices.Grow(text, room)
	}
	return append((*kept)[:0], text...)
}

// keepText keeps the memory of a text for reuse.
func keepText(text []byte) {
	if cap(text) >= longText && cap(text) <= largeText {
		texts.Put(&text)
	}
}
