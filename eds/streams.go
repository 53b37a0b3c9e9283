package eds

import "sync"

// streams are the open ones.
type streams struct {
	mu     sync.Mutex
	open   map[*stream]struct{}
	lastID uint64
}

// add takes a stream in and gives it its number.
func (s *streams) add(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	st.id = s.lastID
	if s.open == nil {
		s.open = make(map[*stream]struct{})
	}
	s.open[st] = struct{}{}
}

func (s *streams) remove(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, st)
}

// all returns the streams of this moment, in no order.
func (s *streams) all() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*stream, 0, len(s.open))
	for st := range s.open {
		all = append(all, st)
	}
	return all
}

func (s *streams) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
