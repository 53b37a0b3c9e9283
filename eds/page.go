package eds

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc/mem"
)

// page is successive resources of a group at one moment. It is encoded once for all members, and
// kept while one of them has not answered.
type page struct {
	start    int // position of the first resource
	frames   []*frame
	versions []uint64
	bytes    int
	digest   xxhash.Digest // of names and versions

	copies       *atomic.Int64 // bytes of the copies of all pages
	delta, state encoded
}

// encoded is the entries of a page in responses of one kind.
type encoded struct {
	uses   atomic.Int32
	once   sync.Once
	buffer mem.Buffer
}

// fewUses is the number of responses that use a page's frames as they are. Only more uses
// justify encoding them as one: that is a copy, which stays in memory until the last client has
// answered, and clients with different orders of names are as many groups.
const fewUses = 8

// maxCopies bounds the bytes of the copies of a table's pages. Beyond it, all responses use frames.
const maxCopies = 64 << 20

// newPage returns the resources of slots from a position on, as many as the limit of bytes
// allows, at least one, or nil if one of them does not exist.
func newPage(slots []*slot, start, limit int, copies *atomic.Int64) *page {
	p := &page{start: start, copies: copies}
	p.digest.Reset()
	for _, s := range slots[start:] {
		f := s.current()
		if f == nil {
			return nil
		}
		if p.bytes > 0 && p.bytes+f.size() > limit {
			break
		}
		p.bytes += f.size()
		p.frames, p.versions = append(p.frames, f), append(p.versions, f.version)
		countResource(&p.digest, s.name, f.version)
	}
	return p
}

// end returns the position after the last resource.
func (p *page) end() int { return p.start + len(p.frames) }

func (p *page) contains(position int) bool { return position >= p.start && position < p.end() }

// addTo adds the entries to a response, of delta or of the state of the world.
func (p *page) addTo(r *response, delta bool) {
	e := &p.state
	if delta {
		e = &p.delta
	}
	var whole mem.Buffer
	if e.uses.Add(1) > fewUses && len(p.frames) > 1 {
		e.once.Do(func() { e.buffer = p.encode(delta) })
		whole = e.buffer
	}
	if whole != nil {
		r.parts = append(r.parts, whole)
	} else {
		for _, f := range p.frames {
			r.parts = append(r.parts, f.buffer(delta))
		}
	}
	r.size = r.parts.Len()
}

// encode returns a copy of the entries, which has room until the page is freed, or nil if there is
// no room.
func (p *page) encode(delta bool) mem.Buffer {
	if p.copies.Add(int64(p.bytes)) > maxCopies {
		p.copies.Add(-int64(p.bytes))
		return nil
	}
	copies := p.copies
	runtime.AddCleanup(p, func(bytes int) { copies.Add(-int64(bytes)) }, p.bytes)
	encoded := make([]byte, 0, p.bytes)
	for _, f := range p.frames {
		encoded = append(encoded, f.buffer(delta).ReadOnlyData()...)
	}
	return mem.SliceBuffer(encoded)
}
