package xds

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/envoy"
	"hdsd/peer/limit"
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
	start      time.Time
	version    string // of the last accepted response
	heard      bool   // a part of a response was accepted
	updated    time.Time
	acked      time.Time
	failure    string
	failed     time.Time
	rejected   string
	rejectedAs string   // its version
	unnamed    string   // the part of it without a known resource
	silent     []string // unanswered names of the present silence; nil: there is none
	refusals   limit.Pace
	unserved   int // number of successive answers that this type is not served
}

// talks returns the conversations of a channel.
func (c *channel) talks() []*talk {
	talks := make([]*talk, len(c.tables))
	for i, t := range c.tables {
		talks[i] = c.source.talkOf(t, c.scope)
	}
	return talks
}

// open records that a stream with a server stands. That is no answer yet: the server may end the
// stream at once.
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
func (k *talk) connect(via string) {
	if !k.connected {
		k.connected, k.start = true, time.Now()
		k.log.Info().Str("event", "upstream_connected").Str("source", k.source).Str("type_url", k.typeURL).Str("upstream", k.server).Msg(via)
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

// namesTold bounds the names in a text.
const namesTold = 10

// silence describes a server that has not answered since names were added.
func silence(names []string) string {
	shownNames := strings.Join(names[:min(len(names), namesTold)], ", ")
	if len(names) > namesTold {
		shownNames += fmt.Sprintf(" and %d more", len(names)-namesTold)
	}
	return "the management server has not answered about endpoints since these names were added: " + shownNames +
		"; it may answer only when it has all of them"
}

// answered reports whether a server answers about a type. "Unimplemented" is an answer,
// too.
func (s *Source) answered(t *table) bool {
	return s.shown(t).connected || t == s.clusters && s.unserved()
}

// lose records that a server does not answer, and the next one to ask.
func (c *channel) lose(server, next string, reason error) {
	s := c.source
	s.mu.Lock()
	defer s.mu.Unlock()
	now, text := time.Now(), clip(reason.Error(), maxReasonBytes)
	for _, k := range c.talks() {
		if k.connected || k.failure != text {
			k.log.Warn().Str("event", "upstream_lost").Str("source", k.source).Str("type_url", k.typeURL).
				Str("upstream", server).Err(reason).Msg("the management server does not answer; its last resources stay in use")
		}
		switch {
		case k.connected:
			k.connected, k.start = false, now
		case k.start.IsZero(): // after a restart, the server may have been away for long
			k.start = now
			if !k.updated.IsZero() && s.restored.Before(now) {
				k.start = s.restored
			}
		}
		k.server, k.failure, k.failed, k.open, k.silent = next, text, now, false, nil
		if k.unserved++; s.settings.aggregated || status.Code(reason) != codes.Unimplemented && !errors.Is(reason, errUnserved) {
			k.unserved = 0
		}
	}
	notify(s.changed)
}

// accept applies a response about one type, and returns its refused part.
func (s *Source) accept(t *table, u *update) *rejection {
	now, before, k := time.Now(), s.assignments.change, s.talkOf(t, u.scope)
	k.answers()
	if t == s.assignments {
		s.unasked = nil // the server will report which of them exist
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
		k.refusals.Warn(now, &k.log, "upstream_refused").Str("source", k.source).Str("type_url", k.typeURL).
			Str("version", version).Str("error", text).
			Msg("resources of the management server are refused; their last valid versions stay in use")
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
	config := cluster.GetEdsClusterConfig()
	if !envoy.IsEDS(cluster) || config.GetEdsConfig().GetPathConfigSource() != nil || config.GetEdsConfig().GetPath() != "" { //nolint:staticcheck // to leave it alone
		return "", false
	}
	return envoy.AssignmentName(cluster), true
}

// notify wakes the receiver of a channel with a buffer of one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
