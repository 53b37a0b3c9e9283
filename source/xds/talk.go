package xds

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/envoyrules"
	"hdsd/source"
)

// talk is the state of the conversation with a server about one type. Guarded by
// Source.mu.
type talk struct {
	server     string
	connected  bool
	since      time.Time
	version    string // of the last accepted response
	heard      bool   // something in a response was accepted
	updated    time.Time
	acked      time.Time
	failure    string
	failed     time.Time
	rejected   string
	rejectedAs string // its version
	unnamed    string // the part of it without a known resource
	unserved   int    // how many times in a row servers answered that they do not serve this type
}

// connect records a stream with a server, or a response. A stream does not count as an
// answer if the server's last answer was that it does not serve the type.
func (s *Source) connect(tables []*table, server string, answer bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tables {
		if t.talk.server = server; answer || t.talk.unserved == 0 {
			s.answers(t)
		}
	}
}

// answers records that a server answers about a type.
func (s *Source) answers(t *table) {
	if !t.talk.connected {
		t.talk.connected, t.talk.since = true, time.Now()
		s.options.Log.Info().Str("event", "upstream_connected").Str("source", s.options.Name).
			Str("type_url", t.typeURL).Str("upstream", t.talk.server).Msg("the management server answers")
	}
	if t.talk.unserved = 0; t.talk.rejected == "" {
		t.talk.failure = ""
	}
}

// answered reports whether a server answers about a type. "Unimplemented" is an answer,
// too.
func (s *Source) answered(t *table) bool { return t.talk.connected || t == s.clusters && s.unserved() }

// lose records that a server does not answer, and which is next.
func (s *Source) lose(tables []*table, server, next string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, text := time.Now(), clip(why.Error(), maxReasonBytes)
	for _, t := range tables {
		if t.talk.connected || t.talk.failure != text {
			s.options.Log.Warn().Str("event", "upstream_lost").Str("source", s.options.Name).Str("type_url", t.typeURL).
				Str("upstream", server).Err(why).Msg("the management server does not answer; its last resources stay in use")
		}
		switch {
		case t.talk.connected:
			t.talk.connected, t.talk.since = false, now
		case t.talk.since.IsZero(): // after a restart, the server may have been away for long
			t.talk.since = now
			if !t.talk.updated.IsZero() && s.restored.Before(now) {
				t.talk.since = s.restored
			}
		}
		t.talk.server, t.talk.failure, t.talk.failed = next, text, now
		if t.talk.unserved++; len(tables) > 1 || status.Code(why) != codes.Unimplemented && !errors.Is(why, errUnserved) {
			t.talk.unserved = 0
		}
	}
	notify(s.changed)
}

// accept applies a response about one type, and returns what it refuses.
func (s *Source) accept(t *table, u *update) *rejection {
	now, before := time.Now(), s.assignments.change
	s.answers(t)
	if t == s.assignments {
		s.unasked = nil // the server will say which of them exist
	}
	refused := t.apply(u, now)
	s.updates++
	if refused == nil {
		t.talk.heard, t.talk.updated = true, now
		t.talk.acked, t.talk.version = now, u.version
		t.talk.failure, t.talk.rejected, t.talk.rejectedAs, t.talk.unnamed = "", "", "", ""
	} else {
		s.reject(t, u.version, refused)
	}
	if s.assignments.change != before {
		notify(s.wake[envoyrules.Assignment])
	}
	notify(s.changed)
	return refused
}

// reject records that a response is refused, in part or as a whole.
func (s *Source) reject(t *table, version string, refused *rejection) {
	now, text := time.Now(), refused.String()
	if t.talk.rejected != text {
		s.options.Log.Warn().Str("event", "upstream_refused").Str("source", s.options.Name).Str("type_url", t.typeURL).
			Str("version", version).Str("error", text).
			Msg("resources of the management server are refused; their last valid versions stay in use")
	}
	t.talk.heard = t.talk.heard || refused.whole == ""
	t.talk.updated, t.talk.failure, t.talk.failed = now, text, now
	t.talk.rejected, t.talk.rejectedAs, t.talk.unnamed = text, version, ""
	if refused.whole != "" || refused.nameless {
		t.talk.unnamed = text
	}
	notify(s.changed)
}

// assignmentOf returns the name of the assignment of a cluster's endpoints, if they come
// from this server.
func assignmentOf(c *content) (string, bool) {
	if c == nil {
		return "", false
	}
	cluster := c.decoded.config
	from := cluster.GetEdsClusterConfig()
	if !(&source.Cluster{Config: cluster}).EDS() || from.GetEdsConfig().GetPathConfigSource() != nil || from.GetEdsConfig().GetPath() != "" { //nolint:staticcheck // to leave it alone
		return "", false
	}
	if name := from.GetServiceName(); name != "" {
		return name, true
	}
	return cluster.GetName(), true
}

// notify wakes whoever waits for a channel with a buffer of one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
