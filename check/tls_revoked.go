package check

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// revocation is the content of revocation lists.
type revocation struct {
	lists    []*x509.RevocationList
	leafOnly bool
}

// newRevocation reads the lists in text; nil if there are none.
func newRevocation(text []byte, leafOnly bool) (*revocation, error) {
	r := &revocation{leafOnly: leafOnly}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "X509 CRL" {
			continue
		}
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil, err
		}
		r.lists = append(r.lists, list)
	}
	if len(r.lists) == 0 {
		return nil, nil
	}
	return r, nil
}

// check requires for each certificate of a chain (or only the first) a list of its
// issuer that does not name it.
func (r *revocation) check(chain []*x509.Certificate, anyTime bool) error {
	for i, c := range chain {
		issuer := c // the last one may be its own issuer
		if i+1 < len(chain) {
			issuer = chain[i+1]
		}
		if err := r.checkCertificate(c, issuer, anyTime); err != nil || r.leafOnly {
			return err
		}
	}
	return nil
}

func (r *revocation) checkCertificate(c, issuer *x509.Certificate, anyTime bool) error {
	for _, list := range r.lists {
		if !bytes.Equal(list.RawIssuer, c.RawIssuer) || list.CheckSignatureFrom(issuer) != nil {
			continue
		}
		now := time.Now()
		if !anyTime && (now.Before(list.ThisUpdate) || !list.NextUpdate.IsZero() && now.After(list.NextUpdate)) {
			return errors.New("the list of revoked certificates is not of this time")
		}
		for _, entry := range list.RevokedCertificateEntries {
			if entry.SerialNumber.Cmp(c.SerialNumber) == 0 {
				return fmt.Errorf("certificate %s is revoked", c.SerialNumber)
			}
		}
		return nil
	}
	return fmt.Errorf("there is no list of revoked certificates of %q", c.Issuer)
}
