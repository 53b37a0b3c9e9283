package eds

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Refuser is a client that refuses something of a type at present, and keeps what it had.
type Refuser struct {
	ID      string // its node id
	TypeURL string
	Text    string // of its latest refusal
	Since   time.Time
}

// Refusing is which clients refuse something. The zero value is ready; any goroutine may use it.
type Refusing struct {
	mu sync.Mutex
	by map[any]Refuser // by what of a client has one type, such as a stream's subscription
}

// Note notes that something of a client refuses what it was sent. One that does already goes on
// to, since then.
func (r *Refusing) Note(key any, is Refuser) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[any]Refuser{}
	}
	if before, ok := r.by[key]; ok {
		is.Since = before.Since
	}
	r.by[key] = is
}

// Forget notes that it refuses nothing any more, or is gone.
func (r *Refusing) Forget(key any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, key)
}

// All returns those that refuse something, in no order.
func (r *Refusing) All() []Refuser {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.by))
}

// Refusing returns the clients that refuse something at present, in no order: streams until they
// take what replaces it or end, polls for as long as they are known.
func (s *Server) Refusing() []Refuser {
	all := s.recorder.refusing.All()
	for _, p := range s.polls.Refusing(time.Now()) {
		all = append(all, Refuser{ID: p.ID, TypeURL: p.TypeURL, Text: p.Refusal.Text, Since: p.Refusal.Time})
	}
	return all
}
