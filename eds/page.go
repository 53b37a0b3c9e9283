package eds

import (
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

// newPage returns the resources of slots from a position on, as many as the limit of bytes
// allows, at least one, or nil if one of them does not exist.
func newPage(slots []*slot, start, limit int) *page {
	p := &page{start: start}
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
	if e.uses.Add(1) <= fewUses {
		for _, f := range p.frames {
			r.parts = append(r.parts, f.buffer(delta))
		}
	} else {
		e.once.Do(func() {
			encoded := make([]byte, 0, p.bytes)
			for _, f := range p.frames {
				encoded = append(encoded, f.buffer(delta).ReadOnlyData()...)
			}
			e.buffer = mem.SliceBuffer(encoded)
		})
		r.parts = append(r.parts, e.buffer)
	}
	r.size = r.parts.Len()
}
