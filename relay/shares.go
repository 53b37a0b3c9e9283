package relay

import (
	"container/list"

	"hdsd/internal/heap"
)

// shares are what is remembered of the nodes of each caller, so that one that has much does not have
// those of others forgotten.
type shares struct {
	all  map[string]*share
	most heap.Heap[*share] // the same, the largest first
}

// share is what is remembered of a caller's nodes.
type share struct {
	caller string
	count  int       // as memory.most
	parts  list.List // in the order in which they end
	index  int       // in shares.most
}

func newShares() shares {
	return shares{all: map[string]*share{}, most: heap.Heap[*share]{
		Less: func(a, b *share) bool { return a.count > b.count }, Moved: func(s *share, index int) { s.index = index },
	}}
}

// join adds a part to its caller's.
func (s *shares) join(caller string, p *part) {
	p.share = s.all[caller]
	if p.share == nil {
		p.share = &share{caller: caller}
		s.all[caller] = p.share
		s.most.Push(p.share)
	}
	p.among = p.share.parts.PushBack(p)
}

// leave removes a part, and the share with the last one.
func (s *shares) leave(p *part) {
	p.share.parts.Remove(p.among)
	if p.share.parts.Len() == 0 {
		s.most.Remove(p.share.index)
		delete(s.all, p.share.caller)
	}
}

// change notes how many resources more a part counts as.
func (s *shares) change(p *part, more int) {
	p.share.count += more
	s.most.Fix(p.share.index)
}

// oldest returns the oldest part of the caller that has most. There has to be one.
func (s *shares) oldest() *part {
	return s.most.Items[0].parts.Front().Value.(*part)
}
