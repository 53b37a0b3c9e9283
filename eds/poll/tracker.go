package poll

import (
	"container/list"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
)

const (
	// Stays is how long a poll is remembered after its latest fetch.
	Stays = 5 * time.Minute
	// DefaultBytes is about how many bytes a tracker takes.
	DefaultBytes = 64 << 20
	// overhead is about what the maps and structures of a poll or an answer take.
	overhead = 512
)

// Tracker remembers who polls, and what each was given.
type Tracker struct {
	mu      sync.Mutex
	free    int // bytes
	clients map[Client]*client
	polls   map[Key]*list.Element // in order
	order   list.List             // of *entry, the one fetched longest ago first
	answers map[answerKey]*Answer
	evicted time.Time // when a poll was last forgotten for lack of room
	unasked int       // the sum over all polls
}

type answerKey struct {
	list    List
	version string
}

// client is one that polls.
type client struct {
	Client
	node  *corev3.Node
	size  int
	since time.Time
	polls []*entry // in no order; each knows its index
}

// NewTracker makes a tracker that takes about so many bytes.
func NewTracker(bytes int) *Tracker {
	return &Tracker{
		free: bytes, clients: map[Client]*client{},
		polls: map[Key]*list.Element{}, answers: map[answerKey]*Answer{},
	}
}

// Record takes in a fetch at its time. A client without a node id is not remembered.
func (t *Tracker) Record(f *Fetch, now time.Time) {
	if f.ID == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.touch(f.Key, now)
	t.free += e.client.size + e.size
	e.client.node, e.client.size = f.Node, 2*proto.Size(f.Node)
	e.record(t, f, now)
	e.size = overhead + len(f.ID) + len(e.Held) + len(e.Choice) + 2*len(e.LastError)
	t.free -= e.client.size + e.size
	t.expire(now)
}

// touch returns the entry of a key, as the one fetched last.
func (t *Tracker) touch(key Key, now time.Time) *entry {
	if element := t.polls[key]; element != nil {
		t.order.MoveToBack(element)
		return entryOf(element)
	}
	c := t.clients[key.Client]
	if c == nil {
		c = &client{Client: key.Client, since: now}
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

// expire forgets what was not fetched for long, and what was fetched longest ago
// where there is no room.
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
	t.unasked -= e.Unasked
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

// All returns every poll that is remembered, the one fetched last at the end.
func (t *Tracker) All(now time.Time) []Poll {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire(now)
	all := make([]Poll, 0, t.order.Len())
	for element := t.order.Front(); element != nil; element = element.Next() {
		e := entryOf(element)
		p := e.Poll
		p.Node, p.Connected = e.client.node, e.client.since
		all = append(all, p)
	}
	return all
}

// Refusing returns the polls whose client has refused an answer and accepted none since.
func (t *Tracker) Refusing(now time.Time) (all []Poll) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire(now)
	for element := t.order.Front(); element != nil; element = element.Next() {
		if e := entryOf(element); e.Refusal != nil {
			all = append(all, e.Poll)
		}
	}
	return all
}

// Count returns the number of clients.
func (t *Tracker) Count(now time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire(now)
	return len(t.clients)
}

// Requested tells what a node polls of a type: everything, or the keys that it calls
// each with. Where polls were forgotten for lack of room, a node that polls anything
// may poll everything.
func (t *Tracker) Requested(node, typeURL string, now time.Time, each func(key string)) (all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	evicted := !t.evicted.IsZero() && now.Sub(t.evicted) < Stays
	for _, by := range []string{ByREST, ByFetch} {
		c := t.clients[Client{node, by}]
		if c == nil {
			continue
		}
		for _, e := range c.polls {
			if e.TypeURL != typeURL {
				continue
			}
			all = all || e.All || evicted
			for _, key := range e.Given.Keys {
				each(key)
			}
		}
	}
	return all
}
