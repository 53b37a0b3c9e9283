package xds

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/pace"
	"hdsd/source"
)

// talk is the state of the conversation with a server about one type, or one scope of it.
// Guarded by Source.mu.
type talk struct {
	log        zerolog.Logger
	source     string // its name
	typeURL    string
	server     string
	open       bool // a stream stands
	connected  bool // the server answers
	since      time.Time
	version    string // of the last accepted response
	heard      bool   // something in a response was accepted
	updated    time.Time
	acked      time.Time
	failure    string
	failed     time.Time
	rejected   string
	rejectedAs string   // its version
	unnamed    string   // the part of it without a known resource
	silent     []string // names since whose subscription nothing came; nil: there is no such silence
	refusals   pace.Pace
	unserved   int // how many times in a row servers answered that they do not serve this type
}

// talks returns the conversations of a channel.
func (c *channel) talks() []*talk {
	all := make([]*talk, len(c.tables))
	for i, t := range c.tables {
		all[i] = c.source.talkOf(t, c.scope)
	}
	return all
}

// open records that a stream with a server stands. Until the server says something, that
// is no answer: it may end the stream at once.
func (c *channel) open(server string) {
	c.source.mu.Lock()
	defer c.source.mu.Unlock()
	for _, k := range c.talks() {
		k.server, k.open = server, true
	}
}

// stand records that a stream has stood for standsAfter. It is no answer if the server's
// last answer was that it does not serve the type.
func (c *channel) stand() {
	c.source.mu.Lock()
	defer c.source.mu.Unlock()
	for _, k := range c.talks() {
		if k.open && k.unserved == 0 {
			k.connect("the stream to the management server stands")
		}
	}
}

// reached records that a server has answered a poll.
func (c *channel) reached(server string) {
	c.source.mu.Lock()
	defer c.source.mu.Unlock()
	for _, k := range c.talks() {
		k.server, k.open = server, true
		k.answers()
	}
}

// connect records that a server can be asked.
func (k *talk) connect(how string) {
	if !k.connected {
		k.connected, k.since = true, time.Now()
		k.log.Info().Str("event", "upstream_connected").Str("source", k.source).Str("type_url", k.typeURL).Str("upstream", k.server).Msg(how)
	}
	if k.rejected == "" && len(k.silent) == 0 {
		k.failure = ""
	}
}

// answers records that a server answers.
func (k *talk) answers() {
	k.unserved, k.silent = 0, nil
	k.connect("the management server answers")
}

// silence records that a server has not answered since names were added.
func (k *talk) silence(names []string) {
	k.silent = names
	k.failure, k.failed = silence(names), time.Now()
	k.log.Warn().Str("event", "upstream_silent").Str("source", k.source).Str("type_url", k.typeURL).
		Str("upstream", k.server).Int("count", len(names)).Strs("names", names[:min(len(names), namesTold)]).
		Msg("the management server has not answered since these names were added; its last resources stay in use")
}

// namesTold is the number of names in a text.
const namesTold = 10

// silence says that a server has not answered since names were added.
func silence(names []string) string {
	told := strings.Join(names[:min(len(names), namesTold)], ", ")
	if len(names) > namesTold {
		told += fmt.Sprintf(" and %d more", len(names)-namesTold)
	}
	return "the management server has not answered about endpoints since these names were added: " + told +
		"; it may answer only when it has all of them"
}

// answered reports whether a server answers about a type. "Unimplemented" is an answer,
// too.
func (s *Source) answered(t *table) bool {
	return s.shown(t).connected || t == s.clusters && s.unserved()
}

// lose records that a server does not answer, and which is next.
func (c *channel) lose(server, next string, why error) {
	s := c.source
	s.mu.Lock()
	defer s.mu.Unlock()
	now, text := time.Now(), clip(why.Error(), maxReasonBytes)
	for _, k := range c.talks() {
		if k.connected || k.failure != text {
			k.log.Warn().Str("event", "upstream_lost").Str("source", k.source).Str("type_url", k.typeURL).
				Str("upstream", server).Err(why).Msg("the management server does not answer; its last resources stay in use")
		}
		switch {
		case k.connected:
			k.connected, k.since = false, now
		case k.since.IsZero(): // after a restart, the server may have been away for long
			k.since = now
			if !k.updated.IsZero() && s.restored.Before(now) {
				k.since = s.restored
			}
		}
		k.server, k.failure, k.failed, k.open, k.silent = next, text, now, false, nil
		if k.unserved++; s.settings.aggregated || status.Code(why) != codes.Unimplemented && !errors.Is(why, errUnserved) {
			k.unserved = 0
		}
	}
	notify(s.changed)
}

// accept applies a response about one type, and returns what it refuses.
func (s *Source) accept(t *table, u *update) *rejection {
	now, before, k := time.Now(), s.assignments.change, s.talkOf(t, u.scope)
	k.answers()
	if t == s.assignments {
		s.unasked = nil // the server will say which of them exist
	}
	refused := t.apply(u, now)
	s.updates++
	if refused == nil {
		k.heard, k.updated = true, now
		k.acked, k.version = now, u.version
		k.failure, k.rejected, k.rejectedAs, k.unnamed = "", "", "", ""
	} else {
		k.reject(u.version, refused)
	}
	if s.assignments.change != before {
		s.wake(s.assignments)
	}
	notify(s.changed)
	return refused
}

// reject records that a response is refused, in part or as a whole.
func (k *talk) reject(version string, refused *rejection) {
	now, text := time.Now(), refused.String()
	if k.rejected != text {
		if more, ok := k.refusals.Next(now); ok {
			k.log.Warn().Str("event", "upstream_refused").Str("source", k.source).Str("type_url", k.typeURL).
				Str("version", version).Str("error", text).Uint64("more", more).
				Msg("resources of the management server are refused; their last valid versions stay in use")
		}
	}
	k.heard = k.heard || refused.whole == ""
	k.updated, k.failure, k.failed = now, text, now
	k.rejected, k.rejectedAs, k.unnamed = text, version, ""
	if refused.whole != "" || refused.nameless {
		k.unnamed = text
	}
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
