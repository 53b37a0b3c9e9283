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
	"hdsd/peer/limit"
	"hdsd/publish"
)

// planeRefusals reports data planes that refuse responses.
type planeRefusals struct {
	log     zerolog.Logger
	list    func() []publish.Refuser
	gauge   prometheus.Gauge
	latest  atomic.Pointer[attention.Named] // no name
	episode limit.Episode                   // of the goroutine that calls look
}

func newPlaneRefusals(log zerolog.Logger, to prometheus.Registerer, list func() []publish.Refuser) *planeRefusals {
	gauge := factory{promauto.With(to)}.gauge("hdsd_data_planes_refusing", "Data planes that refuse a response, and keep the version before.")
	p := &planeRefusals{log: log, list: list, gauge: gauge}
	p.latest.Store(&attention.Named{})
	return p
}

// refusing lists the refusals of data planes, of hdsd and of the relay's control plane.
func (c *Coordinator) refusing() []publish.Refuser {
	all := c.eds.Refusing()
	if c.relay != nil {
		all = append(all, c.relay.Refusing()...)
	}
	return all
}

// named returns the reason of the first refusal, and since when any data plane refuses a response. No
// data plane refuses one if the reason is empty.
func (p *planeRefusals) named() attention.Named { return *p.latest.Load() }

// look finds the data planes that refuse a response. It logs the first one, once a minute at most,
// and the end.
func (p *planeRefusals) look(now time.Time) {
	refusers := p.list()
	nodes := map[string]bool{}
	for i := range refusers {
		nodes[refusers[i].ID] = true
	}
	p.gauge.Set(float64(len(nodes)))
	if len(nodes) == 0 {
		p.latest.Store(&attention.Named{})
		if duration, ok := p.episode.End(now); ok {
			p.log.Info().Str("event", "data_planes_refusing_over").Dur("lasted", duration).Msg("no data plane refuses a response any more")
		}
		return
	}
	first := slices.MinFunc(refusers, func(a, b publish.Refuser) int { return a.Since.Compare(b.Since) })
	begun := p.episode.Begin(now, first.Since)
	p.latest.Store(&attention.Named{Reason: refusalText(len(nodes), &first), Since: p.episode.Since()})
	if begun {
		p.log.Warn().Str("event", "data_planes_refusing").Int("count", len(nodes)).Str("node", first.ID).Str("type_url", first.TypeURL).Str("error", first.Text).
			Msg("data planes refuse a response, and keep the version before: read the error, and hdsd clients")
	}
}

// refusalText is the text of the attention item.
func refusalText(nodes int, first *publish.Refuser) string {
	kind := first.TypeURL[strings.LastIndexByte(first.TypeURL, '.')+1:]
	if nodes == 1 {
		return fmt.Sprintf("data plane %s refuses a %s, and keeps what it had: %s", first.ID, kind, first.Text)
	}
	return fmt.Sprintf("%d data planes refuse what they are sent, and keep what they had; %s was the first, a %s: %s", nodes, first.ID, kind, first.Text)
}
