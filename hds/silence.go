package hds

import "fmt"

// SilenceSink is a Sink that also wants to know of silence.
type SilenceSink interface {
	Sink

	// Silent tells that a checker has reported nothing for three intervals
	// since its first specifier was sent, which is what an Envoy does that has
	// rejected it; and, with false, that it reports after all. Connected and
	// Disconnected end silence as well, without this call.
	Silent(id string, silent bool)
}

// falls tells that the stream is silent, unless it is not.
func (st *stream) falls() {
	if st.reports.Load() > 0 {
		return // without waiting for a sink that is busy with them
	}
	st.telling.Lock()
	defer st.telling.Unlock()
	if st.over || st.reports.Load() > 0 {
		return
	}
	s := st.server
	st.silent.Store(true)
	s.metrics.silent.Inc()
	s.options.Log.Warn().Str("checker", st.checker.ID).Str("version", st.checker.Version).
		Msg("a checker says nothing since its specifier was sent: it may have rejected it (look at its hds_delegate.errors)")
	s.tellSilent(st.checker.ID, true)
}

// speaks ends the silence, if any; telling is held.
func (st *stream) speaks() {
	if !st.silent.CompareAndSwap(true, false) {
		return
	}
	st.server.options.Log.Info().Str("checker", st.checker.ID).Msg("a checker that said nothing reports now")
	st.server.tellSilent(st.checker.ID, false)
}

func (s *Server) tellSilent(id string, silent bool) {
	if sink, ok := s.sink.(SilenceSink); ok {
		sink.Silent(id, silent)
	}
}

func (s *Server) silenceText() string {
	return fmt.Sprintf("nothing was reported within %s of the first specifier: the checker may have rejected it (look at its hds_delegate.errors)",
		patience*s.options.Interval)
}
