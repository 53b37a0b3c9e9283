package eds

import "sync"

// streams are the open streams.
type streams struct {
	mu     sync.Mutex
	open   map[*stream]struct{}
	lastID uint64
}

// add adds a stream and sets its number.
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

// list returns the present streams, in no order.
func (s *streams) list() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*stream, 0, len(s.open))
	for st := range s.open {
		list = append(list, st)
	}
	return list
}

func (s *streams) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
