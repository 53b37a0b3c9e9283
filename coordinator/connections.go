package coordinator

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/peer"
	"hdsd/peer/certs"
	"hdsd/peer/limit"
)

// sweepEvery is the time between two looks at the files and the open connections.
const sweepEvery = time.Second

// watched is a listener whose connections end when their time is over.
type watched struct {
	*limit.Listener
	name string        // of its field in the configuration
	tls  *certs.Server // nil without TLS
	log  zerolog.Logger
	warn time.Time // when to say next that others reach it without TLS; zero: never
}

// listenerOptions are those of any listener.
func (c *calls) listenerOptions(l *configv1.Limits) limit.ListenerOptions {
	return limit.ListenerOptions{Max: int(l.GetMaxConnections()), Refused: c.closed.Inc}
}

// watch makes a watched listener, and reads the certificates of its TLS.
func (c *calls) watch(name string, on net.Listener, limits *configv1.Limits, from *configv1.Listener, protocols ...string) (*watched, error) {
	w, o := &watched{name: name, log: c.log}, c.listenerOptions(limits)
	o.MaxAge, o.Ended = from.GetMaxConnectionAge().AsDuration(), func(_ *limit.Conn, why error) {
		reason := "certificate"
		if errors.Is(why, limit.ErrAge) {
			reason = "age"
		}
		c.ended.WithLabelValues(name, reason).Inc()
	}
	w.Listener = limit.Listen(on, o)
	c.ended.WithLabelValues(name, "age") // so that both exist from the start
	c.ended.WithLabelValues(name, "certificate")
	if from.GetTls() == nil {
		c.insecure.WithLabelValues(name).Set(flag(isOpen(on.Addr())))
		if isOpen(on.Addr()) {
			w.warnInsecure(time.Now())
		}
		return w, nil
	}
	c.insecure.WithLabelValues(name).Set(0)
	var err error
	w.tls, err = certs.New(from.GetTls(), certs.Options{
		Protocols: protocols, Verified: w.hold,
		Report: func(err error) {
			c.log.Error().Str("event", "certificate_refused").Str("listener", name).Err(err).Msg("a certificate is not valid or cannot be used")
		},
		Lost: func(err error) {
			c.log.Warn().Str("event", "workload_api_lost").Str("listener", name).Err(err).Msg("the Workload API cannot be asked: what it said stays in use")
		},
	})
	if err != nil {
		return nil, errors.New(name + ".tls: " + err.Error())
	}
	c.expiry.add(w)
	return w, nil
}

// hold ends the connection of a client when its certificate is not valid any more.
func (w *watched) hold(raw net.Conn, client *certs.Client) {
	conn, ok := raw.(*limit.Conn)
	if !ok {
		return // every connection of Accept is one
	}
	conn.Hold(func() error {
		err := w.tls.Recheck(client)
		if err != nil {
			w.log.Warn().Str("event", "client_certificate_ended").Str("listener", w.name).Str("client", conn.RemoteAddr().String()).
				Str("identity", peer.Named(client.Certificate())).Err(err).Msg("a connection ends because its client's certificate is not valid any more")
		}
		return err
	})
}

// isOpen reports whether other machines may reach an address.
func isOpen(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}

// warnInsecure says that others reach a listener without TLS, now and in a day.
func (w *watched) warnInsecure(now time.Time) {
	w.warn = now.Add(24 * time.Hour)
	w.log.Warn().Str("event", "listener_insecure").Str("listener", w.name).Str("address", w.Addr().String()).
		Msg("other machines reach this address without TLS: nobody knows who they are, and others can read and change what they send; give " + w.name + ".tls, or an address of loopback")
}

// look reads changed files, and ends the connections whose time is over.
func (w *watched) look(now time.Time) {
	if w.tls != nil {
		w.tls.Look()
	}
	if !w.warn.IsZero() && !now.Before(w.warn) {
		w.warnInsecure(now)
	}
	w.Sweep(now)
}

// closeTLS ends what the listeners have open for their certificates.
func (s *servers) closeTLS() {
	for _, w := range s.watched {
		if w != nil && w.tls != nil {
			_ = w.tls.Close() // nothing is asked of it any more
		}
	}
}

// look looks at both listeners, until ctx ends.
func (s *servers) look(ctx context.Context) {
	defer s.closeTLS()
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			for _, w := range s.watched {
				w.look(now)
			}
			s.bounds.tellWaiting(now)
			if s.refusals != nil { // there are data planes
				s.refusals.look(now)
			}
		case <-ctx.Done():
			return
		}
	}
}

type connectionKey struct{}

// inContext puts the connection below TLS into the context of its requests.
func inContext(ctx context.Context, c net.Conn) context.Context {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secured.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// moving asks clients with old connections to make new ones.
func moving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connectionKey{}).(*limit.Conn); ok && c.IsOld(time.Now()) {
			w.Header().Set("Connection", "close") // over HTTP/2, net/http says GOAWAY
		}
		next.ServeHTTP(w, r)
	})
}

// expiry shows when the certificates of the listeners expire. It implements
// prometheus.Collector.
type expiry struct{ of []*watched }

var expiryDesc = prometheus.NewDesc("hdsd_certificate_expiry_seconds",
	"Seconds until a certificate expires, by listener: hdsd's own, or the first of the authorities of its clients' certificates.",
	[]string{"listener", "certificate"}, nil)

func (e *expiry) add(w *watched) { e.of = append(e.of, w) }

// Describe implements prometheus.Collector.
func (e *expiry) Describe(to chan<- *prometheus.Desc) { to <- expiryDesc }

// Collect implements prometheus.Collector.
func (e *expiry) Collect(to chan<- prometheus.Metric) {
	for _, w := range e.of {
		own, authorities := w.tls.Expiry()
		to <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, time.Until(own).Seconds(), w.name, "own")
		if !authorities.IsZero() {
			to <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, time.Until(authorities).Seconds(), w.name, "client_authorities")
		}
	}
}

// planned reports whether hdsd ended the connection from an address for its age.
func (s *servers) planned(address string) bool {
	return slices.ContainsFunc(s.watched, func(w *watched) bool { return w.Planned(address) })
}
