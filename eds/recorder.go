package eds

import (
	"sync"
	"time"

	"github.com/rs/zerolog"

	"hdsd/peer/limit"
	"hdsd/publish"
)

// recorder counts and logs the actions of clients. It logs repeated ones once.
type recorder struct {
	log      zerolog.Logger
	metrics  *metrics
	nacks    latest
	refusing publish.Refusing
	unserved latest

	stuckPace, idlePace limit.Pace
}

// subscribed counts subscriptions that begin, or that end if change is negative.
func (r *recorder) subscribed(t *table, change float64) {
	t.counts.subscriptions.Add(change)
}

// sent counts a response on a stream. The delay is from the oldest change in it; 0: there is
// none.
func (r *recorder) sent(t *table, size int, delay time.Duration) {
	if delay != 0 {
		r.metrics.delay.Observe(delay.Seconds())
	}
	t.counts.responses.Inc()
	r.answered(t, size)
}

// stuck counts and logs a stream that ends because the client does not read.
func (r *recorder) stuck(st *stream) {
	r.metrics.stuck.Inc()
	r.stuckPace.Warn(time.Now(), &r.log, "stream_stuck").Str("caller", st.caller()).Str("node", st.name()).
		Msg("a stream of a data plane ends: its client does not read")
}

// idle counts and logs a stream that ends because the client requests nothing.
func (r *recorder) idle(st *stream) {
	r.metrics.idle.Inc()
	r.idlePace.Warn(time.Now(), &r.log, "stream_idle").Str("caller", st.caller()).
		Msg("a stream of a data plane ends: its client has sent nothing")
}

// fetched counts a fetch.
func (r *recorder) fetched(t *table) { t.counts.fetches.Inc() }

// answered counts the bytes of a response.
func (r *recorder) answered(t *table, size int) {
	t.counts.bytes.Add(float64(size))
}

// unchanged counts a fetch by a client that has the latest version.
func (r *recorder) unchanged(t *table) { t.counts.unchanged.Inc() }

// accepted counts an ACK.
func (r *recorder) accepted(t *table) { t.counts.acks.Inc() }

// refused counts and logs a refused response.
func (r *recorder) refused(t *table, node, text string) {
	t.counts.nacks.Inc()
	if r.nacks.replace(node, t.typeURL, text) {
		r.log.Warn().Str("event", "xds_refused").Str("node", node).Str("type_url", t.typeURL).
			Str("error", text).Msg("a client refused a response")
	}
}

// settle records that a subscription no longer refuses anything. The caller holds the lock of
// the subscription.
func (r *recorder) settle(u *subscription) {
	if u.refusing && u.delivery.failures == 0 {
		u.refusing = false
		r.refusing.Forget(u)
	}
}

// parked counts a request for a type that is not served; shown means that it is logged.
func (r *recorder) parked(node, typeURL string, shown bool) {
	label := typeURL
	if elsewhere[label] == "" {
		label = otherType
	}
	r.metrics.parked.WithLabelValues(label).Inc()
	if shown && r.unserved.replace(node, typeURL, "") {
		r.log.Warn().Str("event", "xds_type_not_served").Str("node", node).Str("type_url", typeURL).
			Msg("a client asks for a type that is " + notServed(typeURL))
	}
}

// unencodable counts and logs a resource that cannot be published.
func (r *recorder) unencodable(err error) {
	r.metrics.unencodable.Inc()
	r.log.Error().Str("event", "resource_not_published").Err(err).
		Msg("a resource cannot be published; the version published before stays")
}

// notInJSON logs a resource that cannot be written as JSON.
func (r *recorder) notInJSON(t *table, name string, err error) {
	r.log.Warn().Str("event", "resource_not_in_json").Str("type_url", t.typeURL).Str("name", brief(name)).Err(err).
		Msg("a resource cannot be written as JSON: clients that poll by REST do not get it")
}

// unasked logs that a node begins or ceases to leave assignments unasked.
func (r *recorder) unasked(node string, before, after int) {
	switch {
	case before == 0 && after > 0:
		r.log.Warn().Str("event", "assignments_not_asked").Str("node", node).Int("count", after).
			Msg("a data plane took clusters that hdsd checks, and does not ask hdsd for their assignments, so it has neither health nor checks of them: " +
				"make hdsd its ADS, or set data_planes.eds_config_source")
	case before > 0 && after == 0:
		r.log.Info().Str("event", "assignments_asked").Str("node", node).
			Msg("a data plane asks for the assignments of all checked clusters that it took")
	}
}

// maxLatest bounds the remembered texts, each of which is logged once.
const maxLatest = 1024

// latest remembers the latest text of each client and type.
type latest struct {
	mu    sync.Mutex
	texts map[[2]string]string // by node and type
}

// replace stores a text and reports whether it differs from the previous one. With very many
// clients, a text may count as new again.
func (l *latest) replace(node, typeURL, text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := [2]string{node, typeURL}
	if before, ok := l.texts[key]; ok && before == text {
		return false
	}
	if l.texts == nil || len(l.texts) >= maxLatest {
		l.texts = make(map[[2]string]string)
	}
	l.texts[key] = text
	return true
}
