package publish

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Refuser is a client that refuses the responses of a type at present, and keeps its previous
// resources.
type Refuser struct {
	ID      string // its node id
	TypeURL string
	Text    string    // the error of its latest refusal
	Since   time.Time // first refusal since it last accepted
}

// Refusing records the clients that refuse responses. The zero value is ready; any goroutine may
// use it.
type Refusing struct {
	mu       sync.Mutex
	refusers map[any]Refuser // by the part of a client with one type, such as a subscription
}

// Note records that the part of a client refuses a response. A part that refuses already keeps
// its Since.
func (r *Refusing) Note(key any, refuser Refuser) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusers == nil {
		r.refusers = map[any]Refuser{}
	}
	if before, ok := r.refusers[key]; ok {
		refuser.Since = before.Since
	}
	r.refusers[key] = refuser
}

// Forget records that the part of a client accepts responses again, or has ended.
func (r *Refusing) Forget(key any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.refusers, key)
}

// All returns the clients that refuse responses, in no order.
func (r *Refusing) All() []Refuser {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.refusers))
}
