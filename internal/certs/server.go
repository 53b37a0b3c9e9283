package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// lookInterval is the least time between two looks at the source.
const lookInterval = time.Second

// Options are what a Server needs besides its source.
type Options struct {
	// Report is told what cannot be used, once for each reason. What was used before
	// stays in use.
	Report func(error)

	// Verified is told of each client whose certificate was verified in a handshake,
	// with the connection below TLS.
	Verified func(net.Conn, *Client)

	// Lost is told when a Workload API cannot be asked, at most once a minute. What it
	// said stays in use.
	Lost func(error)

	// Protocols are those of ALPN, by default h2 and http/1.1.
	Protocols []string

	// Now is the clock, by default the machine's.
	Now func() time.Time
}

// source gives what a server shows, and whom it trusts. Its methods return quickly.
type source interface {
	pair() (tls.Certificate, digest, error)
	clientAuthorities() ([]*x509.Certificate, digest, error)

	// accepts says why verified chains of a client are not good enough.
	accepts(chains [][]*x509.Certificate) error

	close() error
}

// part is what is in use of a source, and the last report about what is not.
type part[T any] struct {
	value   T
	sum     digest
	refused string // why what is new is not in use
	invalid string // why what is in use is not valid
}

// Server makes the TLS configurations of a server.
type Server struct {
	o    Options
	from source

	mu          sync.Mutex // guards the fields below
	looked      time.Time
	pair        part[tls.Certificate]
	authorities part[[]*x509.Certificate]
	pool        *x509.CertPool // of the authorities; nil: clients need no certificate
	generation  uint64         // of the authorities
	good        *tls.Config    // made of the above; immutable
}

// New reads the files of a server's certificate, or asks a Workload API, for at most
// startTimeout. Certificates that are not valid at present are reported, and used: clients
// may have another clock. Close the server in the end.
func New(c *configv1.ServerTls, o Options) (*Server, error) {
	if c.GetSpiffeWorkloadApi() == nil {
		return newServer(newFiles(c), o)
	}
	from, err := openWorkload(c.GetSpiffeWorkloadApi(), o.Lost)
	if err != nil {
		return nil, err
	}
	s, err := newServer(from, o)
	if err != nil {
		return nil, errors.Join(err, from.close())
	}
	return s, nil
}

// Close ends the connection to a Workload API. What is in use stays.
func (s *Server) Close() error { return s.from.close() }

func newServer(from source, o Options) (*Server, error) {
	if len(o.Protocols) == 0 {
		o.Protocols = []string{"h2", "http/1.1"}
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{o: o, from: from, looked: o.Now()}
	var err error
	if s.pair.value, s.pair.sum, err = from.pair(); err != nil {
		return nil, err
	}
	if s.authorities.value, s.authorities.sum, err = from.clientAuthorities(); err != nil {
		return nil, err
	}
	s.rebuild()
	s.watchValidity()
	return s, nil
}

// Config gives a configuration that uses what is current in each handshake.
func (s *Server) Config() *tls.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	outer := s.good.Clone()
	outer.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return s.forClient(hello.Conn), nil }
	return outer
}

// forClient gives the configuration for one handshake.
func (s *Server) forClient(raw net.Conn) *tls.Config {
	s.Look()
	s.mu.Lock()
	config, generation := s.good, s.generation
	s.mu.Unlock()
	if config.ClientCAs == nil {
		return config
	}
	config = config.Clone()
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if err := s.from.accepts(state.VerifiedChains); err != nil {
			return err
		}
		if s.o.Verified != nil {
			s.o.Verified(raw, &Client{shown: state.PeerCertificates, until: chainsEnd(state.VerifiedChains), generation: generation})
		}
		return nil
	}
	return config
}

// Look takes over what is new in the source. It looks at most once a second, so it may
// be called often.
func (s *Server) Look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Now()
	if since := now.Sub(s.looked); since >= 0 && since < lookInterval {
		return
	}
	s.looked = now
	pair, sum, err := s.from.pair()
	changed := update(&s.pair, pair, sum, err, func(pair tls.Certificate) error { return pairValidAt(pair, now) }, s.o.Report)
	authorities, sum, err := s.from.clientAuthorities()
	if update(&s.authorities, authorities, sum, err, func(all []*x509.Certificate) error { return anyValidAt(all, now) }, s.o.Report) {
		changed = true
		s.generation++
	}
	if changed {
		s.rebuild()
	}
	s.watchValidity()
}

// update puts a value into use, unless it cannot be used, or is invalid while the one in
// use is valid. It reports whether it did.
func update[T any](in *part[T], value T, sum digest, err error, valid func(T) error, report func(error)) bool {
	if err == nil && sum == in.sum {
		in.refused = ""
		return false
	}
	if err == nil {
		if err = valid(value); err != nil && valid(in.value) != nil {
			err = nil // no worse than before
		}
	}
	if err != nil {
		if err.Error() != in.refused {
			in.refused = err.Error()
			report(fmt.Errorf("TLS stays with what it had before: %w", err))
		}
		return false
	}
	in.value, in.sum, in.refused = value, sum, ""
	return true
}

// watchValidity reports what is in use and not valid. The caller holds mu.
func (s *Server) watchValidity() {
	now := s.o.Now()
	note := func(known *string, of string, err error) {
		text := ""
		if err != nil {
			text = of + ": " + err.Error()
		}
		if text != "" && *known == "" {
			s.o.Report(errors.New(text))
		}
		*known = text
	}
	note(&s.pair.invalid, "hdsd's own certificate is in use", pairValidAt(s.pair.value, now))
	note(&s.authorities.invalid, "the clients' authorities are in use", anyValidAt(s.authorities.value, now))
}

// rebuild makes the configuration. The caller holds mu, or is alone.
func (s *Server) rebuild() {
	config := &tls.Config{
		Certificates: []tls.Certificate{s.pair.value}, NextProtos: s.o.Protocols, MinVersion: tls.VersionTLS12, Time: s.o.Now,
	}
	s.pool = nil
	if len(s.authorities.value) > 0 {
		s.pool = x509.NewCertPool()
		for _, one := range s.authorities.value {
			s.pool.AddCert(one)
		}
		config.ClientCAs, config.ClientAuth = s.pool, tls.RequireAndVerifyClientCert
		// A resumed session would outlive the authority that signed its certificate.
		config.SessionTicketsDisabled = true
	}
	s.good = config
}

// Expiry gives the times at which the server's certificate and the first of the valid
// client authorities expire. The second is zero where clients need no certificate.
func (s *Server) Expiry() (own, authorities time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pair.value.Leaf.NotAfter, nextEnd(s.authorities.value, s.o.Now())
}

// Client is a client whose certificate was verified in a handshake.
type Client struct {
	shown      []*x509.Certificate
	until      time.Time // its chain is valid
	generation uint64    // of the authorities that it was verified by
}

// Certificate gives the client's own.
func (c *Client) Certificate() *x509.Certificate { return c.shown[0] }

// Recheck says why a client's certificate is not valid any more. One client is rechecked
// by one goroutine at a time.
func (s *Server) Recheck(c *Client) error {
	now := s.o.Now()
	s.mu.Lock()
	pool, generation := s.pool, s.generation
	s.mu.Unlock()
	if generation == c.generation && !now.After(c.until) {
		return nil
	}
	if err := validAt(c.shown[0], now); err != nil {
		return err
	}
	if pool == nil {
		return nil // clients need no certificate any more
	}
	between := x509.NewCertPool()
	for _, one := range c.shown[1:] {
		between.AddCert(one)
	}
	chains, err := c.shown[0].Verify(x509.VerifyOptions{
		Roots: pool, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err == nil {
		err = s.from.accepts(chains)
	}
	if err != nil {
		return fmt.Errorf("its authority is not trusted any more: %w", err)
	}
	c.until, c.generation = chainsEnd(chains), generation
	return nil
}
