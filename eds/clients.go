package eds

import (
	"cmp"
	"slices"
	"time"
)

// Client is one type that a connected client takes, or asks for although it is not
// served. A client that polls has one for each list of names.
type Client struct {
	ID        string // its node id
	Stream    uint64 // a number for its stream: a node may have several; 0: it polls
	TypeURL   string
	Delta     bool
	Connected time.Time
	Resources int       // subscribed
	Synced    int       // the client has the latest version, or knows that there is none
	Stale     int       // changed since, or not acknowledged yet
	Error     int       // the client refused the latest version
	Unasked   int       // checked clusters that it took 30 s ago or longer and whose assignments it has not asked for
	LastAck   time.Time // zero where there was none
	LastError string    // text of the latest refusal, kept after an ACK; of a type that is not served, what to do about it
	Poll      *Poll     // nil: it has a stream
}

// Poll is the latest fetch of a client that polls.
type Poll struct {
	By    string    // poll.ByREST or poll.ByFetch
	Time  time.Time // of the latest one
	Given string    // the version of the answer
	Held  string    // the version that the client said it had; empty: none
}

// Clients returns every client and type, by id, stream and type. With only, those that
// asked for a resource whose name it takes, and what they have of these alone.
func (s *Server) Clients(only func(name string) bool) []Client {
	var all []Client
	for _, st := range s.streams.all() {
		all = append(all, st.clients(only)...)
	}
	all = append(all, s.fetcher.clients(only)...)
	if only != nil {
		all = slices.DeleteFunc(all, func(c Client) bool { return c.Resources == 0 })
	}
	slices.SortStableFunc(all, func(a, b Client) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.TypeURL, b.TypeURL))
	})
	return all
}

// clients returns one Client for each type of a stream.
func (st *stream) clients(only func(name string) bool) []Client {
	st.mu.Lock()
	id, all := st.nodeID, st.unservedClients()
	st.mu.Unlock()
	if only != nil {
		all = nil // names of other types
	}
	for _, u := range st.subscriptions() {
		all = append(all, u.client(id, only))
	}
	return all
}

func (u *subscription) client(id string, only func(name string) bool) Client {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := Client{
		ID: id, Stream: u.stream.id, TypeURL: u.table.typeURL, Delta: u.delta, Connected: u.stream.since,
		LastAck: u.delivery.lastAck, LastError: u.delivery.lastError,
	}
	if u.unasked != nil {
		c.Unasked = u.unasked.late
	}
	count := func(w *watch) {
		if only == nil || only(w.slot.own()) {
			c.count(w)
		}
	}
	for _, w := range u.interest.watches {
		count(w)
	}
	u.member.others(func(w watch, _ *frame) {
		w.queued = w.state == fresh && w.sent == 0
		count(&w)
	})
	return c
}

// count counts a resource, under the subscription's lock.
func (c *Client) count(w *watch) {
	c.Resources++
	switch {
	case w.queued || w.withheld || w.state == pending:
		c.Stale++
	case w.state == refused:
		c.Error++
	default:
		c.Synced++
	}
}
