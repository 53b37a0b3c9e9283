package config

import (
	"bytes"
	"encoding/pem"
	"fmt"
)

// pairError says whether the certificate or the key is at fault.
func pairError(named [3]fileError, contents [3][]byte, err error) *fileError {
	certificate, key := &named[0], &named[1]
	switch {
	case !hasBlock(contents[0], "CERTIFICATE"):
		certificate.err = fmt.Errorf("holds no certificate: it needs the server's certificate and its chain in PEM (-----BEGIN CERTIFICATE-----)")
		return certificate
	case hasBlock(contents[1], "ENCRYPTED PRIVATE KEY"):
		key.err = fmt.Errorf("is encrypted, and hdsd cannot ask for a password: decrypt it (openssl pkey -in FILE -out FILE)")
		return key
	case !hasBlock(contents[1], "PRIVATE KEY"):
		key.err = fmt.Errorf("holds no private key: it needs the certificate's key in PEM (-----BEGIN PRIVATE KEY-----)")
		return key
	}
	key.err = fmt.Errorf("does not go with %s: both must come from one request (%w)", certificate.file, err)
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
