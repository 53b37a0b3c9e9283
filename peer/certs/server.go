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

// Options are the settings of a Server besides its source.
type Options struct {
	// Report gets content that cannot be used, once for each reason. The previous content stays
	// in use.
	Report func(error)

	// Verified gets each client whose certificate was verified in a handshake, with the
	// connection below TLS.
	Verified func(net.Conn, *Client)

	// Lost gets the failure of a Workload API, at most once a minute. Its last answer stays in
	// use.
	Lost func(error)

	// Protocols are those of ALPN, by default h2 and http/1.1.
	Protocols []string

	// Now is the clock, by default the machine's.
	Now func() time.Time
}

// source returns the certificate of a server, and its clients' authorities. Its methods return
// quickly.
type source interface {
	pair() (tls.Certificate, digest, error)
	clientAuthorities() ([]*x509.Certificate, digest, error)

	// namesHosts reports whether certificates of servers have the names of their hosts.
	namesHosts() bool

	// accepts returns an error if no verified chain of a peer suffices.
	accepts(chains [][]*x509.Certificate) error

	close() error
}

// part is the part of a source in use, and the last report about another.
type part[T any] struct {
	value   T
	sum     digest
	refused string // reason why newer content is not in use
	invalid string // reason why the content in use is not valid
}

// Server makes the TLS configurations of a server.
type Server struct {
	o      Options
	source source

	mu          sync.Mutex // guards the fields below
	looked      time.Time
	pair        part[tls.Certificate]
	authorities part[[]*x509.Certificate]
	pool        *x509.CertPool // of the authorities; nil: clients need no certificate
	generation  uint64         // of the authorities
	good        *tls.Config    // made of the above; immutable
}

// New reads the files of a server's certificate, or asks a Workload API, for at most
// startTimeout. Certificates that are not valid now are reported, and used: clients may have
// another clock. Close the server in the end.
func New(c *configv1.ServerTls, o Options) (*Server, error) {
	if c.GetSpiffeWorkloadApi() == nil {
		return newServer(newFiles(c), o)
	}
	workload, err := openWorkload(c.GetSpiffeWorkloadApi(), o.Lost)
	if err != nil {
		return nil, err
	}
	s, err := newServer(workload, o)
	if err != nil {
		return nil, errors.Join(err, workload.close())
	}
	return s, nil
}

// Close ends the connection to a Workload API. Its content stays in use.
func (s *Server) Close() error { return s.source.close() }

func newServer(src source, o Options) (*Server, error) {
	if len(o.Protocols) == 0 {
		o.Protocols = []string{"h2", "http/1.1"}
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{o: o, source: src, looked: o.Now()}
	var err error
	if s.pair.value, s.pair.sum, err = src.pair(); err != nil {
		return nil, err
	}
	if s.authorities.value, s.authorities.sum, err = src.clientAuthorities(); err != nil {
		return nil, err
	}
	s.rebuild()
	s.watchValidity()
	return s, nil
}

// Config returns a configuration that uses the current content in each handshake.
func (s *Server) Config() *tls.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	outer := s.good.Clone()
	outer.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return s.forClient(hello.Conn), nil }
	return outer
}

// Peer returns a configuration for calls to servers that have certificates of the same authorities as clients, as
// replicas have. Each handshake uses the current content. A certificate from files must have the name of the
// server.
func (s *Server) Peer() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: s.o.Protocols, Time: s.o.Now,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			s.Look()
			s.mu.Lock()
			defer s.mu.Unlock()
			pair := s.pair.value
			return &pair, nil
		},
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies with the current authorities
		VerifyConnection:   s.verifyServer,
	}
}

// verifyServer verifies the certificate of a server.
func (s *Server) verifyServer(state tls.ConnectionState) error {
	s.mu.Lock()
	options := x509.VerifyOptions{Roots: s.pool, CurrentTime: s.o.Now(), Intermediates: x509.NewCertPool()}
	s.mu.Unlock()
	if options.Roots == nil {
		return errors.New("there are no authorities for the certificates of other replicas")
	}
	if s.source.namesHosts() {
		options.DNSName = state.ServerName
	}
	for _, cert := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(cert)
	}
	chains, err := state.PeerCertificates[0].Verify(options)
	if err != nil {
		return err
	}
	return s.source.accepts(chains)
}

// forClient returns the configuration for one handshake.
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
		if err := s.source.accepts(state.VerifiedChains); err != nil {
			return err
		}
		if s.o.Verified != nil {
			s.o.Verified(raw, &Client{shown: state.PeerCertificates, validUntil: chainsEnd(state.VerifiedChains), generation: generation})
		}
		return nil
	}
	return config
}

// Look adopts new content of the source. It looks at most once a second, so it may be called
// often.
func (s *Server) Look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Now()
	if elapsed := now.Sub(s.looked); elapsed >= 0 && elapsed < lookInterval {
		return
	}
	s.looked = now
	pair, sum, err := s.source.pair()
	changed := update(&s.pair, pair, sum, err, func(pair tls.Certificate) error { return pairValidAt(pair, now) }, s.o.Report)
	authorities, sum, err := s.source.clientAuthorities()
	if update(&s.authorities, authorities, sum, err, func(list []*x509.Certificate) error { return anyValidAt(list, now) }, s.o.Report) {
		changed = true
		s.generation++
	}
	if changed {
		s.rebuild()
	}
	s.watchValidity()
}

// update puts a value into use, unless it cannot be used, or is invalid while the current one is
// valid. It reports whether it did.
func update[T any](current *part[T], value T, sum digest, err error, valid func(T) error, report func(error)) bool {
	if err == nil && sum == current.sum {
		current.refused = ""
		return false
	}
	if err == nil {
		if err = valid(value); err != nil && valid(current.value) != nil {
			err = nil // no worse than before
		}
	}
	if err != nil {
		if err.Error() != current.refused {
			current.refused = err.Error()
			report(fmt.Errorf("TLS stays with what it had before: %w", err))
		}
		return false
	}
	current.value, current.sum, current.refused = value, sum, ""
	return true
}

// watchValidity reports invalid content in use. The caller holds mu.
func (s *Server) watchValidity() {
	now := s.o.Now()
	note := func(latest *string, subject string, err error) {
		text := ""
		if err != nil {
			text = subject + ": " + err.Error()
		}
		if text != "" && *latest == "" {
			s.o.Report(errors.New(text))
		}
		*latest = text
	}
	note(&s.pair.invalid, "hdsd's own certificate is in use", pairValidAt(s.pair.value, now))
	note(&s.authorities.invalid, "the clients' authorities are in use", anyValidAt(s.authorities.value, now))
}

// rebuild makes the configuration. The caller holds mu, or has the only reference.
func (s *Server) rebuild() {
	config := &tls.Config{
		Certificates: []tls.Certificate{s.pair.value}, NextProtos: s.o.Protocols, MinVersion: tls.VersionTLS12, Time: s.o.Now,
	}
	s.pool = nil
	if len(s.authorities.value) > 0 {
		s.pool = x509.NewCertPool()
		for _, cert := range s.authorities.value {
			s.pool.AddCert(cert)
		}
		config.ClientCAs, config.ClientAuth = s.pool, tls.RequireAndVerifyClientCert
		// A resumed session would outlive the authority that signed its certificate.
		config.SessionTicketsDisabled = true
	}
	s.good = config
}

// Expiry returns the times at which the server's certificate and the first of the valid client
// authorities expire. The second is zero if clients need no certificate.
func (s *Server) Expiry() (certificate, authorities time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pair.value.Leaf.NotAfter, nextEnd(s.authorities.value, s.o.Now())
}

// Client is a client whose certificate was verified in a handshake.
type Client struct {
	shown      []*x509.Certificate
	validUntil time.Time // end of its chain's validity
	generation uint64    // of the authorities that verified it
}

// Certificate returns the client's own.
func (c *Client) Certificate() *x509.Certificate { return c.shown[0] }

// Recheck returns the reason why a client's certificate is no longer valid, or nil. One client
// is rechecked by one goroutine at a time.
func (s *Server) Recheck(c *Client) error {
	now := s.o.Now()
	s.mu.Lock()
	pool, generation := s.pool, s.generation
	s.mu.Unlock()
	if generation == c.generation && !now.After(c.validUntil) {
		return nil
	}
	if err := validAt(c.shown[0], now); err != nil {
		return err
	}
	if pool == nil {
		return nil // clients no longer need a certificate
	}
	intermediates := x509.NewCertPool()
	for _, cert := range c.shown[1:] {
		intermediates.AddCert(cert)
	}
	chains, err := c.shown[0].Verify(x509.VerifyOptions{
		Roots: pool, Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err == nil {
		err = s.source.accepts(chains)
	}
	if err != nil {
		return fmt.Errorf("its authority is not trusted any more: %w", err)
	}
	c.validUntil, c.generation = chainsEnd(chains), generation
	return nil
}
