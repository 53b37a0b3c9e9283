package certs

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
)

// pairError attributes an error to the certificate or the key.
func pairError(named [2]FileError, contents [2][]byte, err error) *FileError {
	certificate, key := &named[0], &named[1]
	switch {
	case !hasBlock(contents[0], "CERTIFICATE"):
		certificate.Err = errors.New("holds no certificate: it needs the server's certificate and its chain in PEM (-----BEGIN CERTIFICATE-----)")
		return certificate
	case hasBlock(contents[1], "ENCRYPTED PRIVATE KEY"):
		key.Err = errors.New("is encrypted, and hdsd cannot ask for a password: decrypt it (openssl pkey -in FILE -out FILE)")
		return key
	case !hasBlock(contents[1], "PRIVATE KEY"):
		key.Err = errors.New("holds no private key: it needs the certificate's key in PEM (-----BEGIN PRIVATE KEY-----)")
		return key
	}
	key.Err = fmt.Errorf("does not go with %s: both must come from one request (%w)", certificate.File, err)
	return key
}

func hasBlock(data []byte, kind string) bool {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if bytes.HasSuffix([]byte(block.Type), []byte(kind)) {
			return true
		}
	}
	return false
}
