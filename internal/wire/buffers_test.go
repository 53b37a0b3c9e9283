package wire

import "testing"

func TestBuffersHaveTheirLength(t *testing.T) {
	var p buffers
	for range 2 { // new ones, and used ones
		for _, length := range []int{0, 1, 2, 3, 4096, 4097, 16 << 10, 1<<20 - 1, 1 << 20, 1<<20 + 1} {
			b := p.Get(length)
			if len(*b) != length || cap(*b) > 2*max(length, 1) {
				t.Errorf("a buffer of %d bytes has %d, and room for %d", length, len(*b), cap(*b))
			}
			*b = (*b)[:length/2] // grpc gives back a prefix
			p.Put(b)
		}
	}
	other := make([]byte, 5)
	p.Put(&other)
	if b := p.Get(8); len(*b) != 8 {
		t.Errorf("a buffer of 8 bytes has %d", len(*b))
	}
}
