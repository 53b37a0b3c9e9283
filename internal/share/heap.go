package share

// byAmount is a heap of shares, the largest first. Pool has the only one.
type byAmount []*share

// Len implements heap.Interface.
func (b byAmount) Len() int { return len(b) }

// Less implements heap.Interface.
func (b byAmount) Less(i, j int) bool { return b[i].amount > b[j].amount }

// Swap implements heap.Interface.
func (b byAmount) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].index, b[j].index = i, j
}

// Push implements heap.Interface.
func (b *byAmount) Push(x any) {
	s := x.(*share)
	s.index = len(*b)
	*b = append(*b, s)
}

// Pop implements heap.Interface.
func (b *byAmount) Pop() any {
	last := len(*b) - 1
	s := (*b)[last]
	(*b)[last] = nil
	*b = (*b)[:last]
	return s
}
