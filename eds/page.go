package eds

import (
	"sync"
	"sync/atomic"

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
	uses   atomic.Int32
	once   sync.Once
	buffer mem.Buffer
}

// fewUses is how many responses have a page's frames as they are. Only for more is it worth to
// encode them as one: that is a copy, which stays in memory for as long as one client has not
// answered, and clients that each ask in an order of their own are as many groups.
const fewUses = 8

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
			all := make([]byte, 0, p.bytes)
			for _, f := range p.frames {
				all = append(all, f.buffer(delta).ReadOnlyData()...)
			}
			e.buffer = mem.SliceBuffer(all)
		})
		r.parts = append(r.parts, e.buffer)
	}
	r.size = r.parts.Len()
}
