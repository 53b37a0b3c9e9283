package certs

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/yamlpb"
)

const maxPEMBytes = 4 << 20

// FileError is a fault of a file named by a field.
type FileError struct {
	Field, File string
	Err         error
}

// Error implements error.
func (e *FileError) Error() string { return e.File + ": " + e.Err.Error() }

// Unwrap returns the fault without the file's name.
func (e *FileError) Unwrap() error { return e.Err }

// digest identifies a content.
type digest [sha256.Size]byte

// files is a source of certificates that reads files.
type files struct {
	chain, key, authorities string
}

func newFiles(c *configv1.ServerTls) files {
	return files{c.GetCertificateChainFile(), c.GetPrivateKeyFile(), c.GetClientCaFile()}
}

// Check returns the fault of a server's certificate files, or the part that is not valid now: a
// server accepts that at its start, and reports it.
func Check(c *configv1.ServerTls, now time.Time) (wrong, invalid *FileError) {
	f := newFiles(c)
	pair, _, wrong := f.readPair()
	if wrong != nil {
		return wrong, nil
	}
	if err := pairValidAt(pair, now); err != nil {
		invalid = &FileError{Field: "certificate_chain_file", File: f.chain, Err: fmt.Errorf("is not valid at present: %w", err)}
	}
	if f.authorities == "" {
		return nil, invalid
	}
	authorities, _, wrong := f.readAuthorities()
	if err := anyValidAt(authorities, now); wrong == nil && invalid == nil && err != nil {
		invalid = &FileError{Field: "client_ca_file", File: f.authorities, Err: fmt.Errorf("has no authority that is valid at present: %w", err)}
	}
	return wrong, invalid
}

func (f files) pair() (tls.Certificate, digest, error) {
	pair, sum, err := f.readPair()
	if err != nil {
		return pair, sum, err
	}
	return pair, sum, nil
}

func (f files) readPair() (tls.Certificate, digest, *FileError) {
	named := [2]FileError{{Field: "certificate_chain_file", File: f.chain}, {Field: "private_key_file", File: f.key}}
	var contents [2][]byte
	for i := range named {
		if contents[i], named[i].Err = yamlpb.ReadFile(named[i].File, maxPEMBytes); named[i].Err != nil {
			return tls.Certificate{}, digest{}, &named[i]
		}
	}
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return tls.Certificate{}, digest{}, pairError(named, contents, err)
	}
	sums := sha256.Sum256(contents[0])
	sum := sha256.Sum256(append(sums[:], contents[1]...))
	return pair, sum, nil
}

// clientAuthorities returns nil if clients need no certificate.
func (f files) clientAuthorities() ([]*x509.Certificate, digest, error) {
	if f.authorities == "" {
		return nil, digest{}, nil
	}
	authorities, sum, err := f.readAuthorities()
	if err != nil {
		return nil, sum, err
	}
	return authorities, sum, nil
}

func (f files) readAuthorities() ([]*x509.Certificate, digest, *FileError) {
	failed := func(err error) ([]*x509.Certificate, digest, *FileError) {
		return nil, digest{}, &FileError{Field: "client_ca_file", File: f.authorities, Err: err}
	}
	content, err := yamlpb.ReadFile(f.authorities, maxPEMBytes)
	if err != nil {
		return failed(err)
	}
	var authorities []*x509.Certificate
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		// As in x509.CertPool.AppendCertsFromPEM, other blocks are left unread.
		if cert, err := x509.ParseCertificate(block.Bytes); block.Type == "CERTIFICATE" && err == nil {
			authorities = append(authorities, cert)
		}
	}
	if len(authorities) == 0 {
		return failed(errors.New("holds no certificate: it needs the authorities' certificates in PEM (-----BEGIN CERTIFICATE-----)"))
	}
	return authorities, sha256.Sum256(content), nil
}

// accepts implements source: a certificate of any authority suffices.
func (files) accepts([][]*x509.Certificate) error { return nil }

func (files) namesHosts() bool { return true }

func (files) close() error { return nil }
