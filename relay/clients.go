package relay

import (
	"cmp"
	"slices"
	"strings"
	"time"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/publish"
	"hdsd/relay/message"
)

// A stream keeps the status of so many types, and so many bytes of a type's name and a refusal's text.
const (
	maxTypes = 32
	maxText  = 1024
)

// typeStatus has the latest answers of a client for a type. stream.mu guards it.
type typeStatus struct {
	lastAck   time.Time
	lastError string // text of the latest refusal
	refused   bool   // its latest answer is a refusal
}

// note keeps the answer of a request in the status of its type. It keeps no text of a refused secret.
func (st *stream) note(h *message.Head) {
	if h.Refusal != nil {
		st.server.metrics.refusals.Inc()
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	t := st.types[h.TypeURL]
	if t == nil {
		if len(st.types) >= maxTypes || len(h.TypeURL) > maxText {
			return
		}
		if st.types == nil {
			st.types = map[string]*typeStatus{}
		}
		t = &typeStatus{}
		st.types[strings.Clone(h.TypeURL)] = t
	}
	switch {
	case h.Refusal != nil && h.TypeURL == resourcev3.SecretType:
		t.refused, t.lastError = true, "it refused a secret"
	case h.Refusal != nil:
		text := h.Text()
		t.refused, t.lastError = true, strings.ToValidUTF8(strings.Clone(text[:min(len(text), maxText)]), "?")
	case h.Answers:
		t.refused, t.lastAck = false, time.Now()
		st.server.refusing.Forget(t)
	}
	if h.Refusal != nil {
		st.server.refusing.Note(t, publish.Refuser{ID: st.nodeID, TypeURL: strings.Clone(h.TypeURL), Text: t.lastError, Since: time.Now()})
	}
}

// Clients returns every client and type, ordered by id and type. The number of resources of a type that
// passes unchanged is not known.
func (s *Server) Clients(only func(name string) bool) []publish.Client {
	var list []publish.Client
	for _, st := range s.openStreams() {
		list = append(list, st.clients(only)...)
	}
	slices.SortStableFunc(list, func(a, b publish.Client) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.TypeURL, b.TypeURL))
	})
	return list
}

func (st *stream) clients(only func(name string) bool) []publish.Client {
	st.mu.Lock()
	defer st.mu.Unlock()
	var list []publish.Client
	for typeURL, t := range st.types {
		c := publish.Client{
			ID: st.nodeID, TypeURL: typeURL, Delta: st.method.delta, Connected: st.opened, LastAck: t.lastAck, LastError: t.lastError,
		}
		if k, relayed := kindOf(typeURL); relayed && st.ledgers[k] != nil {
			l := st.ledgers[k]
			for s := range l.holdings.all() {
				name := s.name()
				if only != nil && !only(name) {
					continue
				}
				c.Resources++
				_, dirty := l.dirty[name]
				switch open := l.doubts.open(name); {
				case dirty || open && len(l.offers) > 0 && !t.refused:
					c.Stale++
				case open: // the client refuses the resource, or a response with it
					c.Error++
				default:
					c.Synced++
				}
			}
		}
		if only == nil || c.Resources > 0 {
			list = append(list, c)
		}
	}
	return list
}
