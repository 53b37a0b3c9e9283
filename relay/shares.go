package relay

import (
	"container/list"

	"hdsd/internal/heap"
)

// shares count the remembered resources of each caller, so that a caller with many does not displace
// those of others.
type shares struct {
	byCaller map[string]*share
	largest  heap.Heap[*share] // the same shares, the largest first
}

// share has the remembered parts of a caller's nodes.
type share struct {
	caller string
	count  int       // as memory.size
	parts  list.List // the oldest first
	index  int       // in shares.largest
}

func newShares() shares {
	return shares{byCaller: map[string]*share{}, largest: heap.Heap[*share]{
		Less: func(a, b *share) bool { return a.count > b.count }, Moved: func(s *share, index int) { s.index = index },
	}}
}

// join adds a part to the share of its caller.
func (s *shares) join(caller string, p *part) {
	p.share = s.byCaller[caller]
	if p.share == nil {
		p.share = &share{caller: caller}
		s.byCaller[caller] = p.share
		s.largest.Push(p.share)
	}
	p.shareElement = p.share.parts.PushBack(p)
}

// leave removes a part, and its share with the last part.
func (s *shares) leave(p *part) {
	p.share.parts.Remove(p.shareElement)
	if p.share.parts.Len() == 0 {
		s.largest.Remove(p.share.index)
		delete(s.byCaller, p.share.caller)
	}
}

// change adds to the count of a part's share.
func (s *shares) change(p *part, weight int) {
	p.share.count += weight
	s.largest.Fix(p.share.index)
}

// oldest returns the oldest part of the largest share. There has to be one.
func (s *shares) oldest() *part {
	return s.largest.Items[0].parts.Front().Value.(*part)
}
