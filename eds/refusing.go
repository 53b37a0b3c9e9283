package eds

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Refuser is a client that refuses the responses of a type at present, and keeps what it had.
type Refuser struct {
	ID      string // its node id
	TypeURL string
	Text    string    // the error of its latest refusal
	Since   time.Time // its first refusal since it last accepted
}

// Refusing knows which clients refuse responses. The zero value is ready; any goroutine may use it.
type Refusing struct {
	mu  sync.Mutex
	all map[any]Refuser // by the part of a client that has one type, such as a subscription
}

// Note notes that the part of a client refuses a response. A part that refuses already keeps its
// Since.
func (r *Refusing) Note(key any, refuser Refuser) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[any]Refuser{}
	}
	if before, ok := r.all[key]; ok {
		refuser.Since = before.Since
	}
	r.all[key] = refuser
}

// Forget notes that the part of a client accepts responses again, or has ended.
func (r *Refusing) Forget(key any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, key)
}

// All returns the clients that refuse responses, in no order.
func (r *Refusing) All() []Refuser {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.all))
}

// Refusing returns the clients that refuse responses at present, in no order: a stream until it
// accepts a replacement or ends, a poll until hdsd forgets it.
func (s *Server) Refusing() []Refuser {
	all := s.recorder.refusing.All()
	for _, p := range s.polls.Refusing(time.Now()) {
		all = append(all, Refuser{ID: p.ID, TypeURL: p.TypeURL, Text: p.Refusal.Text, Since: p.Refusal.Time})
	}
	return all
}
