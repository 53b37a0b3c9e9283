package config

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/yamlpb"
)

const (
	maxPEMBytes  = 4 << 20
	lookInterval = time.Second
)

// ServerTLS makes a server's TLS configuration from its files. When a client connects,
// it reads changed files again, at most once a second. It reports broken new files, and
// the last valid ones stay in use. protocols are those of ALPN, by default h2 and
// http/1.1.
func ServerTLS(files *configv1.ServerTls, report func(error), protocols ...string) (*tls.Config, error) {
	return serverTLS(files, report, time.Now, protocols)
}

func serverTLS(files *configv1.ServerTls, report func(error), now func() time.Time, protocols []string) (*tls.Config, error) {
	if len(protocols) == 0 {
		protocols = []string{"h2", "http/1.1"}
	}
	if report == nil {
		report = func(error) {}
	}
	f := &follower{files: files, report: report, now: now, protocols: protocols}
	read, err := readIdentity(files)
	if err != nil {
		return nil, err
	}
	f.seen, f.good, f.looked = read.contents, f.configuration(read), now()
	outer := f.good.Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.current(), nil }
	return outer, nil
}

// follower keeps a TLS configuration up to date with its files.
type follower struct {
	files     *configv1.ServerTls
	report    func(error)
	now       func() time.Time
	protocols []string

	mu      sync.Mutex // guards the fields below
	looked  time.Time
	seen    [3][]byte   // contents of the last successful read
	good    *tls.Config // made of seen; immutable
	problem string      // the last report about the current files
}

func (f *follower) current() *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if since := now.Sub(f.looked); since >= 0 && since < lookInterval {
		return f.good
	}
	f.looked = now
	read, err := readIdentity(f.files)
	switch {
	case err != nil && err.Error() != f.problem:
		f.problem = err.Error()
		f.report(fmt.Errorf("TLS stays with the files read before: %w", err))
	case err == nil:
		f.problem = ""
		if !read.sameAs(f.seen) {
			f.seen, f.good = read.contents, f.configuration(read)
		}
	}
	return f.good
}

func (f *follower) configuration(read *identity) *tls.Config {
	config := &tls.Config{
		Certificates: []tls.Certificate{read.certificate},
		NextProtos:   f.protocols,
		MinVersion:   tls.VersionTLS12,
	}
	if read.clientCAs != nil {
		config.ClientCAs = read.clientCAs
		config.ClientAuth = tls.RequireAndVerifyClientCert
		// A resumed session would outlive the authority that signed its certificate.
		config.SessionTicketsDisabled = true
	}
	return config
}

// identity is the content of a server's files.
type identity struct {
	contents    [3][]byte // certificate chain, key, client authorities
	certificate tls.Certificate
	clientCAs   *x509.CertPool // nil: clients need no certificate
}

func (i *identity) sameAs(contents [3][]byte) bool {
	for n := range contents {
		if !bytes.Equal(i.contents[n], contents[n]) {
			return false
		}
	}
	return true
}

// fileError is a fault of a file that a field names.
type fileError struct {
	field, file string
	err         error
}

func (e *fileError) Error() string { return e.file + ": " + e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

func readIdentity(files *configv1.ServerTls) (*identity, *fileError) {
	read := &identity{}
	named := [3]fileError{
		{field: "certificate_chain_file", file: files.GetCertificateChainFile()},
		{field: "private_key_file", file: files.GetPrivateKeyFile()},
		{field: "client_ca_file", file: files.GetClientCaFile()},
	}
	for i := range named {
		if named[i].file == "" {
			continue
		}
		if read.contents[i], named[i].err = yamlpb.ReadFile(named[i].file, maxPEMBytes); named[i].err != nil {
			return nil, &named[i]
		}
	}
	var err error
	if read.certificate, err = tls.X509KeyPair(read.contents[0], read.contents[1]); err != nil {
		return nil, pairError(named, read.contents, err)
	}
	if named[2].file != "" {
		read.clientCAs = x509.NewCertPool()
		if !read.clientCAs.AppendCertsFromPEM(read.contents[2]) {
			named[2].err = fmt.Errorf("holds no certificate: it needs the authorities' certificates in PEM (-----BEGIN CERTIFICATE-----)")
			return nil, &named[2]
		}
	}
	return read, nil
}
