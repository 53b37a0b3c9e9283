package send

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics show the states of the receivers.
type metrics struct {
	sent, failed, dropped prometheus.Counter
	delay                 prometheus.Observer
}

func newMetrics(registerer prometheus.Registerer, h *Hub) *metrics {
	f := promauto.With(registerer)
	gauge := func(name, help string, value func(*State) int) {
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			sum := 0
			for _, s := range h.States() {
				sum += value(&s)
			}
			return float64(sum)
		})
	}
	gauge("hdsd_notifications_open", "Notifications that receivers have and that are not over.", func(s *State) int { return s.Open })
	gauge("hdsd_notifications_queued", "Beginnings and ends that wait to be sent to a receiver.", func(s *State) int { return s.Queued })
	gauge("hdsd_notify_receivers_failing", "Receivers that did not take the latest.", func(s *State) int {
		if s.FailingSince.IsZero() {
			return 0
		}
		return 1
	})
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		sent:    counter("hdsd_notifications_sent_total", "Beginnings and ends that a receiver took."),
		failed:  counter("hdsd_notifications_failed_total", "Requests to receivers that failed."),
		dropped: counter("hdsd_notifications_dropped_total", "Beginnings and ends that were given up."),
		delay: f.NewHistogram(prometheus.HistogramOpts{
			Name: "hdsd_notification_delay_seconds", Help: "From when something is wrong to when a receiver was told, min_duration included.",
			Buckets: []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000},
		}),
	}
}
