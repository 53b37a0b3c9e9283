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

// sweepInterval is the time between two checks of certificate files and open connections.
const sweepInterval = time.Second

// watchedListener ends connections at their maximum age, or when their certificates become invalid.
type watchedListener struct {
	*limit.Listener
	name string        // its field in the configuration
	tls  *certs.Server // nil without TLS
	log  zerolog.Logger
	warn time.Time // time of the next warning about the lack of TLS; zero: never
}

// listenerOptions returns the common options of listeners.
func (c *calls) listenerOptions(l *configv1.Limits) limit.ListenerOptions {
	return limit.ListenerOptions{Max: int(l.GetMaxConnections()), Refused: c.closed.Inc}
}

// watch returns a watchedListener, with the certificates of its configuration.
func (c *calls) watch(name string, listener net.Listener, limits *configv1.Limits, conf *configv1.Listener, protocols ...string) (*watchedListener, error) {
	w, o := &watchedListener{name: name, log: c.log}, c.listenerOptions(limits)
	o.MaxAge, o.Ended = conf.GetMaxConnectionAge().AsDuration(), func(_ *limit.Conn, cause error) {
		reason := "certificate"
		if errors.Is(cause, limit.ErrAge) {
			reason = "age"
		}
		c.endedConnections.WithLabelValues(name, reason).Inc()
	}
	w.Listener = limit.Listen(listener, o)
	c.endedConnections.WithLabelValues(name, "age") // both series exist from the start
	c.endedConnections.WithLabelValues(name, "certificate")
	if conf.GetTls() == nil {
		c.insecure.WithLabelValues(name).Set(flag(isOpen(listener.Addr())))
		if isOpen(listener.Addr()) {
			w.warnInsecure(time.Now())
		}
		return w, nil
	}
	c.insecure.WithLabelValues(name).Set(0)
	var err error
	w.tls, err = certs.New(conf.GetTls(), certs.Options{
		Protocols: protocols, Verified: w.recheck,
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

// recheck ends the connection of a client when its certificate becomes invalid.
func (w *watchedListener) recheck(raw net.Conn, client *certs.Client) {
	conn, ok := raw.(*limit.Conn)
	if !ok {
		return // cannot happen: Accept returns such connections
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

// warnInsecure warns that other machines reach a listener without TLS. The next warning follows after a day.
func (w *watchedListener) warnInsecure(now time.Time) {
	w.warn = now.Add(24 * time.Hour)
	w.log.Warn().Str("event", "listener_insecure").Str("listener", w.name).Str("address", w.Addr().String()).
		Msg("other machines reach this address without TLS: nobody knows who they are, and others can read and change what they send; give " + w.name + ".tls, or an address of loopback")
}

// sweep reads changed certificate files, and ends connections whose time is over.
func (w *watchedListener) sweep(now time.Time) {
	if w.tls != nil {
		w.tls.Look()
	}
	if !w.warn.IsZero() && !now.Before(w.warn) {
		w.warnInsecure(now)
	}
	w.Sweep(now)
}

// closeTLS closes the certificate sources of the listeners.
func (s *servers) closeTLS() {
	for _, w := range s.watched {
		if w != nil && w.tls != nil {
			_ = w.tls.Close() // not in use any more
		}
	}
}

// watchListeners sweeps both listeners until ctx ends.
func (s *servers) watchListeners(ctx context.Context) {
	defer s.closeTLS()
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			for _, w := range s.watched {
				w.sweep(now)
			}
			s.bounds.logWaiting(now)
			if s.refusals != nil { // the coordinator is wired
				s.refusals.look(now)
			}
		case <-ctx.Done():
			return
		}
	}
}

type connectionKey struct{}

// inContext adds the connection below TLS to the context of its requests.
func inContext(ctx context.Context, c net.Conn) context.Context {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secured.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// closeOld asks clients with old connections to connect again.
func closeOld(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connectionKey{}).(*limit.Conn); ok && c.IsOld(time.Now()) {
			w.Header().Set("Connection", "close") // over HTTP/2, net/http says GOAWAY
		}
		next.ServeHTTP(w, r)
	})
}

// expiry implements prometheus.Collector for the expiry of the certificates of the listeners.
type expiry struct{ listeners []*watchedListener }

var expiryDesc = prometheus.NewDesc("hdsd_certificate_expiry_seconds",
	"Seconds until a certificate expires, by listener: hdsd's own, or the first of the authorities of its clients' certificates.",
	[]string{"listener", "certificate"}, nil)

func (e *expiry) add(w *watchedListener) { e.listeners = append(e.listeners, w) }

// Describe implements prometheus.Collector.
func (e *expiry) Describe(descs chan<- *prometheus.Desc) { descs <- expiryDesc }

// Collect implements prometheus.Collector.
func (e *expiry) Collect(metrics chan<- prometheus.Metric) {
	for _, w := range e.listeners {
		own, authorities := w.tls.Expiry()
		metrics <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, time.Until(own).Seconds(), w.name, "own")
		if !authorities.IsZero() {
			metrics <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, time.Until(authorities).Seconds(), w.name, "client_authorities")
		}
	}
}

// planned reports whether hdsd ended the connection from an address because of its age.
func (s *servers) planned(address string) bool {
	return slices.ContainsFunc(s.watched, func(w *watchedListener) bool { return w.Planned(address) })
}
