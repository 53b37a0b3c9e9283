package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"
)

// validAt returns an error if a certificate is not valid now.
func validAt(c *x509.Certificate, now time.Time) error {
	switch {
	case now.Before(c.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s: put one in place that is, or set this machine's clock", c.NotBefore.UTC().Format(time.RFC3339))
	case now.After(c.NotAfter):
		return fmt.Errorf("the certificate has expired at %s: put a new one in place", c.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// pairValidAt is validAt for the certificate of a server. The other certificates with it may be
// out of date: clients do not need all of them.
func pairValidAt(pair tls.Certificate, now time.Time) error { return validAt(pair.Leaf, now) }

// anyValidAt returns an error if no authority is valid now.
func anyValidAt(authorities []*x509.Certificate, now time.Time) (err error) {
	for _, cert := range authorities {
		if err = validAt(cert, now); err == nil {
			return nil
		}
	}
	return err
}

// chainsEnd returns the time until which at least one chain is valid.
func chainsEnd(chains [][]*x509.Certificate) (end time.Time) {
	for _, chain := range chains {
		var first time.Time
		for i, cert := range chain {
			if i == 0 || cert.NotAfter.Before(first) {
				first = cert.NotAfter
			}
		}
		if first.After(end) {
			end = first
		}
	}
	return end
}

// nextEnd returns the time at which the first of the valid authorities expires or, if none is
// valid, the last one did.
func nextEnd(authorities []*x509.Certificate, now time.Time) (next time.Time) {
	var last time.Time
	for _, cert := range authorities {
		if cert.NotAfter.After(last) {
			last = cert.NotAfter
		}
		if cert.NotAfter.After(now) && (next.IsZero() || cert.NotAfter.Before(next)) {
			next = cert.NotAfter
		}
	}
	if next.IsZero() {
		return last
	}
	return next
}
