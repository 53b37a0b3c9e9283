package hds

import (
	"fmt"
	"time"
)

// SilenceSink is a Sink that also wants to know of silence.
type SilenceSink interface {
	Sink

	// Silent tells that a checker has reported nothing of what it was sent for
	// three intervals since it first was sent something to check, which is
	// what an Envoy does that has rejected it; and, with false, that it
	// reports after all. Heartbeats are no reports: an Envoy that took an empty
	// specifier goes on with them. Connected and Disconnected end silence as
	// well, without this call.
	Silent(id string, silent bool)
}

// falls tells that the stream is silent, unless it is not.
func (st *stream) falls() {
	if st.follows.Load() {
		return // without waiting for a sink that is busy with them
	}
	st.telling.Lock()
	defer st.telling.Unlock()
	if st.over || st.follows.Load() {
		return
	}
	s := st.server
	st.silent.Store(true)
	s.metrics.silent.Inc()
	s.options.Log.Warn().Str("event", "checker_silent").Str("checker", st.checker.ID).Str("version", st.checker.Version).
		Msg("a checker reports nothing of what it was sent: it may have rejected it (look at its hds_delegate.errors)")
	s.tellSilent(st.checker.ID, true)
}

// speaks ends the silence, if any; telling is held.
func (st *stream) speaks() {
	if !st.silent.CompareAndSwap(true, false) {
		return
	}
	st.server.options.Log.Info().Str("event", "checker_speaks").Str("checker", st.checker.ID).Msg("a checker that was silent reports now")
	st.server.tellSilent(st.checker.ID, false)
}

func (s *Server) tellSilent(id string, silent bool) {
	if sink, ok := s.sink.(SilenceSink); ok {
		sink.Silent(id, silent)
	}
}

func (s *Server) silenceText() string {
	return fmt.Sprintf("nothing of what it was sent first was reported within %s: it may have rejected it (look at its hds_delegate.errors)",
		patience*s.options.Interval)
}

// vigil is the wait for a checker to report what it was sent. It belongs to the
// goroutine that sends.
type vigil struct {
	*time.Timer
	kept bool
}

// keep begins the wait with the first plan that lists something. One that lists
// nothing ends it.
func (v *vigil) keep(p *plan, patience time.Duration) {
	if len(p.order) == 0 {
		v.Stop()
		v.kept = false
		return
	}
	if !v.kept {
		v.Reset(patience)
		v.kept = true
	}
}
