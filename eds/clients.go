package eds

import (
	"cmp"
	"slices"
	"time"

	"hdsd/publish"
)

// Clients returns every client and type, by id, stream and type. With a filter, it returns those
// that requested a matching name, and counts only matching resources.
func (s *Server) Clients(filter func(name string) bool) []publish.Client {
	var clients []publish.Client
	unasked := s.unasked.count(time.Now())
	for _, st := range s.streams.list() {
		clients = append(clients, st.clients(filter, unasked)...)
	}
	clients = append(clients, s.fetcher.clients(filter, unasked)...)
	if filter != nil {
		clients = slices.DeleteFunc(clients, func(c publish.Client) bool { return c.Resources == 0 })
	}
	slices.SortStableFunc(clients, func(a, b publish.Client) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.TypeURL, b.TypeURL))
	})
	return clients
}

// clients returns one Client for each type of a stream, given the numbers of unasked assignments.
func (st *stream) clients(filter func(name string) bool, unasked map[any]int) []publish.Client {
	st.mu.Lock()
	id, clients := st.nodeID, st.unservedClients()
	st.mu.Unlock()
	if filter != nil {
		clients = nil // names of other types
	}
	for _, u := range st.subscriptions() {
		c := u.client(id, filter)
		c.Unasked = unasked[u]
		clients = append(clients, c)
	}
	return clients
}

func (u *subscription) client(id string, filter func(name string) bool) publish.Client {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := publish.Client{
		ID: id, Stream: u.stream.id, TypeURL: u.table.typeURL, Delta: u.delta, Connected: u.stream.start,
		LastAck: u.delivery.lastAck, LastError: u.delivery.lastError,
	}
	for w := range u.interest.all() {
		if filter != nil && !filter(w.slot.baseName()) {
			continue
		}
		c.Resources++
		switch {
		case w.queued || w.withheld || w.state == pending || !w.answered():
			c.Stale++
		case w.state == refused:
			c.Error++
		default:
			c.Synced++
		}
	}
	return c
}

// Refusing returns the clients that refuse responses at present, in no order: a stream until it
// accepts a replacement or ends, a poll until hdsd forgets it.
func (s *Server) Refusing() []publish.Refuser {
	refusers := s.recorder.refusing.All()
	for _, p := range s.polls.Refusing(time.Now()) {
		refusers = append(refusers, publish.Refuser{ID: p.ID, TypeURL: p.TypeURL, Text: p.Refusal.Text, Since: p.Refusal.Time})
	}
	return refusers
}
