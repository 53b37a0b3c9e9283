package poll

import (
	"container/list"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
)

const (
	// Stays is the time for which a poll is remembered after its latest fetch.
	Stays = 5 * time.Minute
	// DefaultBytes is the approximate size of a tracker.
	DefaultBytes = 64 << 20
	// overhead estimates the maps and structures of a poll or an answer.
	overhead = 512
)

// Tracker remembers polling clients, and the answer to each.
type Tracker struct {
	mu      sync.Mutex
	free    int // bytes
	clients map[Client]*client
	polls   map[Key]*list.Element // in order
	order   list.List             // of *entry, the one fetched longest ago first
	answers map[answerKey]*Answer
	evicted time.Time // time at which a poll was last forgotten for lack of room
}

type answerKey struct {
	list    List
	version string
}

// client is a polling client.
type client struct {
	Client
	node  *corev3.Node
	size  int
	start time.Time
	polls []*entry // in no order; each knows its index
}

// NewTracker makes a tracker of about so many bytes.
func NewTracker(bytes int) *Tracker {
	return &Tracker{
		free: bytes, clients: map[Client]*client{},
		polls: map[Key]*list.Element{}, answers: map[answerKey]*Answer{},
	}
}

// Record adds a fetch at its time, and reports whether the client accepts an answer that it had
// not. It ignores a client without a node id.
func (t *Tracker) Record(f *Fetch, now time.Time) (accepted bool) {
	if f.ID == "" {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.touch(f.Key, now)
	t.free += e.client.size + e.size
	e.client.node, e.client.size = f.Node, 2*proto.Size(f.Node)
	before := e.Accepted
	e.record(t, f, now)
	e.size = overhead + len(f.ID) + len(e.Held) + len(e.Choice) + 2*len(e.LastError)
	t.free -= e.client.size + e.size
	accepted = e.Accepted != nil && e.Accepted != before
	t.expire(now)
	return accepted
}

// touch returns the entry of a key, and makes it the latest.
func (t *Tracker) touch(key Key, now time.Time) *entry {
	if element := t.polls[key]; element != nil {
		t.order.MoveToBack(element)
		return entryOf(element)
	}
	c := t.clients[key.Client]
	if c == nil {
		c = &client{Client: key.Client, start: now}
		t.clients[key.Client] = c
	}
	e := &entry{Poll: Poll{Key: key}, client: c, index: len(c.polls)}
	c.polls = append(c.polls, e)
	t.polls[key] = t.order.PushBack(e)
	return e
}

func entryOf(element *list.Element) *entry {
	return element.Value.(*entry) //nolint:forcetypeassert // nothing else is in the list
}

// expire forgets old polls and, for lack of room, the oldest ones.
func (t *Tracker) expire(now time.Time) {
	for element := t.order.Front(); element != nil; element = t.order.Front() {
		e := entryOf(element)
		if t.free >= 0 && now.Sub(e.Time) < Stays {
			return
		}
		if t.free < 0 {
			t.evicted = now
		}
		t.order.Remove(element)
		t.forget(e)
	}
}

func (t *Tracker) forget(e *entry) {
	delete(t.polls, e.Key)
	t.free += e.size
	e.release(t)

	c := e.client
	last := len(c.polls) - 1
	c.polls[e.index], c.polls[last].index = c.polls[last], e.index
	c.polls[last] = nil
	if c.polls = c.polls[:last]; last == 0 {
		delete(t.clients, c.Client)
		t.free += c.size
	}
}

// All returns every remembered poll, the latest at the end.
func (t *Tracker) All(now time.Time) []Poll {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire(now)
	polls := make([]Poll, 0, t.order.Len())
	for element := t.order.Front(); element != nil; element = element.Next() {
		e := entryOf(element)
		p := e.Poll
		p.Node, p.Connected = e.client.node, e.client.start
		polls = append(polls, p)
	}
	return polls
}

// Refusing returns the polls whose client has refused an answer, and accepted none since.
func (t *Tracker) Refusing(now time.Time) (polls []Poll) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire(now)
	for element := t.order.Front(); element != nil; element = element.Next() {
		if e := entryOf(element); e.Refusal != nil {
			polls = append(polls, e.Poll)
		}
	}
	return polls
}

// Count returns the number of clients.
func (t *Tracker) Count(now time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire(now)
	return len(t.clients)
}

// Requested visits the keys of a type that a node polls; all: it polls everything. If polls were
// forgotten for lack of room, a node that polls anything may poll everything.
func (t *Tracker) Requested(node, typeURL string, now time.Time, visit func(key string)) (wildcard bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	evicted := !t.evicted.IsZero() && now.Sub(t.evicted) < Stays
	for _, protocol := range []string{ByREST, ByFetch} {
		c := t.clients[Client{node, protocol}]
		if c == nil {
			continue
		}
		for _, e := range c.polls {
			if e.TypeURL != typeURL {
				continue
			}
			wildcard = wildcard || e.All || evicted
			for _, key := range e.Served.Keys {
				visit(key)
			}
		}
	}
	return wildcard
}
