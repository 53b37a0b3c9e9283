package wire

import (
	"math/bits"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"
)

// Buffers makes a grpc.Server reuse buffers without clearing them. grpc's own pool clears each
// of them completely, although data from the network fills it.
func Buffers() grpc.ServerOption { return experimental.BufferPool(new(buffers)) }

// mostBits is the size of the largest reused buffers, as a power of two.
const mostBits = 20

// buffers is a mem.BufferPool, with a pool for each power of two.
type buffers struct{ pools [mostBits + 1]sync.Pool }

var _ mem.BufferPool = (*buffers)(nil)

// Get implements mem.BufferPool.
func (p *buffers) Get(length int) *[]byte {
	size := bits.Len(uint(max(length-1, 0)))
	if size > mostBits {
		b := make([]byte, length)
		return &b
	}
	b, ok := p.pools[size].Get().(*[]byte)
	if !ok {
		b = new([]byte)
		*b = make([]byte, 1<<size)
	}
	*b = (*b)[:length]
	return b
}

// Put implements mem.BufferPool.
func (p *buffers) Put(b *[]byte) {
	if size := bits.Len(uint(cap(*b))) - 1; size >= 0 && size <= mostBits && cap(*b) == 1<<size {
		p.pools[size].Put(b)
	}
}
