package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"hdsd/coordinator/attention"
	"hdsd/eds"
)

// planeRefusals tells of data planes that refuse what they are sent.
type planeRefusals struct {
	log   zerolog.Logger
	all   func() []eds.Refuser
	gauge prometheus.Gauge
	now   atomic.Pointer[attention.Named] // no name

	logged time.Time // when that was last logged; of the goroutine that looks
	begun  bool      // the log says that some refuse; of the same goroutine
}

func newPlaneRefusals(log zerolog.Logger, to prometheus.Registerer, all func() []eds.Refuser) *planeRefusals {
	gauge := factory{promauto.With(to)}.gauge("hdsd_data_planes_refusing", "Data planes that refuse something that they were sent, and keep what they had.")
	p := &planeRefusals{log: log, all: all, gauge: gauge}
	p.now.Store(&attention.Named{})
	return p
}

// refusing lists what data planes refuse, of hdsd and of the relay's control plane.
func (c *Coordinator) refusing() []eds.Refuser {
	all := c.eds.Refusing()
	if c.relay != nil {
		all = append(all, c.relay.Refusing()...)
	}
	return all
}

// named says what the data planes refuse, and since when any does; no reason: none does.
func (p *planeRefusals) named() attention.Named { return *p.now.Load() }

// look looks at what they refuse, and logs when that begins, once a minute at most, and when it
// ends.
func (p *planeRefusals) look(now time.Time) {
	refusers, before := p.all(), p.named()
	nodes := map[string]bool{}
	for i := range refusers {
		nodes[refusers[i].ID] = true
	}
	p.gauge.Set(float64(len(nodes)))
	if len(nodes) == 0 {
		if p.now.Store(&attention.Named{}); p.begun {
			p.begun = false
			p.log.Info().Str("event", "data_planes_refusing_over").Dur("lasted", now.Sub(before.Since)).Msg("no data plane refuses anything any more")
		}
		return
	}
	first := slices.MinFunc(refusers, func(a, b eds.Refuser) int { return a.Since.Compare(b.Since) })
	next := attention.Named{Reason: refusalText(len(nodes), &first), Since: before.Since}
	if before.Reason == "" {
		next.Since = first.Since
	}
	p.now.Store(&next)
	if !p.begun && now.Sub(p.logged) >= time.Minute {
		p.begun, p.logged = true, now
		p.log.Warn().Str("event", "data_planes_refusing").Int("count", len(nodes)).Str("node", first.ID).Str("type_url", first.TypeURL).Str("error", first.Text).
			Msg("data planes refuse something that they were sent, and keep what they had")
	}
}

func refusalText(nodes int, first *eds.Refuser) string {
	what := first.TypeURL[strings.LastIndexByte(first.TypeURL, '.')+1:]
	if nodes == 1 {
		return fmt.Sprintf("data plane %s refuses a %s, and keeps what it had: %s", first.ID, what, first.Text)
	}
	return fmt.Sprintf("%d data planes refuse what they are sent, and keep what they had; %s was the first, a %s: %s", nodes, first.ID, what, first.Text)
}
