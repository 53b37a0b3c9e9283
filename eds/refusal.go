package eds

import "sync"

// maxRefusals is how many refusals are remembered, so that each is logged once.
const maxRefusals = 1024

// refusals are the latest of each client and type.
type refusals struct {
	mu   sync.Mutex
	last map[[2]string]string // the text, by node and type
}

// news tells whether the client has not said the same last. It may be said
// again where very many clients refuse something.
func (r *refusals) news(node, typeURL, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]string{node, typeURL}
	if last, ok := r.last[key]; ok && last == text {
		return false
	}
	if r.last == nil || len(r.last) >= maxRefusals {
		r.last = make(map[[2]string]string)
	}
	r.last[key] = text
	return true
}

// refused counts that a client did not take a response, and logs why: once, also
// where it says so at each change or with each poll.
func (s *Server) refused(t *table, node, text string) {
	s.metrics.nacks.WithLabelValues(t.typeURL).Inc()
	if s.refusals.news(node, t.typeURL, text) {
		s.log.Warn().Str("event", "xds_refused").Str("node", node).Str("type_url", t.typeURL).
			Str("error", text).Msg("a client refused a response")
	}
}
