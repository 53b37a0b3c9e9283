package eds

import (
	"sync"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc/mem"
)

// page is successive resources of a group at one moment. It is encoded once for all members,
// and kept while it is on its way to one of them.
type page struct {
	from     int // the position of the first
	frames   []*frame
	versions []uint64
	bytes    int
	digest   xxhash.Digest // of names and versions

	delta, state encoded
}

// encoded is the entries of a page in responses of one kind.
type encoded struct {
	once   sync.Once
	buffer mem.Buffer
}

// newPage returns the resources of slots from a position on, as many as the limit of bytes
// allows, at least one; nil: one of them does not exist.
func newPage(slots []*slot, from, limit int) *page {
	p := &page{from: from}
	p.digest.Reset()
	for _, s := range slots[from:] {
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

// end is the position after the last resource.
func (p *page) end() int { return p.from + len(p.frames) }

func (p *page) has(at int) bool { return at >= p.from && at < p.end() }

// buffer returns the entries in responses of delta, or of the state of the world.
func (p *page) buffer(delta bool) mem.Buffer {
	e := &p.state
	if delta {
		e = &p.delta
	}
	e.once.Do(func() {
		all := make([]byte, 0, p.bytes)
		for _, f := range p.frames {
			if delta {
				all = append(all, f.bytes...)
			} else {
				all = append(all, f.bytes[f.body:]...)
			}
		}
		e.buffer = mem.SliceBuffer(all)
	})
	return e.buffer
}
