package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"
)

// validAt says why a certificate is not valid at a time.
func validAt(c *x509.Certificate, now time.Time) error {
	switch {
	case now.Before(c.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s: put one in place that is, or set this machine's clock", c.NotBefore.UTC().Format(time.RFC3339))
	case now.After(c.NotAfter):
		return fmt.Errorf("the certificate has expired at %s: put a new one in place", c.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// pairValidAt is validAt for the certificate that a server shows. What comes with it may
// be out of date: clients do not need all of it.
func pairValidAt(pair tls.Certificate, now time.Time) error { return validAt(pair.Leaf, now) }

// anyValidAt says why no authority is valid at a time.
func anyValidAt(authorities []*x509.Certificate, now time.Time) (err error) {
	for _, one := range authorities {
		if err = validAt(one, now); err == nil {
			return nil
		}
	}
	return err
}

// chainsEnd gives the time until which at least one chain is valid.
func chainsEnd(chains [][]*x509.Certificate) (end time.Time) {
	for _, chain := range chains {
		var first time.Time
		for i, one := range chain {
			if i == 0 || one.NotAfter.Before(first) {
				first = one.NotAfter
			}
		}
		if first.After(end) {
			end = first
		}
	}
	return end
}

// nextEnd gives the time at which the first of the valid authorities expires or, where
// none is valid, the last one did.
func nextEnd(authorities []*x509.Certificate, now time.Time) (next time.Time) {
	var last time.Time
	for _, one := range authorities {
		if one.NotAfter.After(last) {
			last = one.NotAfter
		}
		if one.NotAfter.After(now) && (next.IsZero() || one.NotAfter.Before(next)) {
			next = one.NotAfter
		}
	}
	if next.IsZero() {
		return last
	}
	return next
}
