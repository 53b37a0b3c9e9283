package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"
)

// room is a folder with what configuration names but is not here: files of
// certificates, keys and secrets.
type room struct{ folder string }

func newRoom(folder string) (*room, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "corpus"}, DNSNames: []string{"corpus"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, SubjectKeyId: []byte{1},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	revoked, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: now, NextUpdate: now.AddDate(1, 0, 0)}, template, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	r := &room{folder: folder}
	for name, data := range map[string][]byte{
		certificateFile: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		keyFile:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		revokedFile:     pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: revoked}),
		secretsFile:     []byte("resources: []\n"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	return r, nil
}

const (
	certificateFile = "certificate.pem"
	keyFile         = "key.pem"
	revokedFile     = "revoked.pem"
	secretsFile     = "secrets.yaml"
)

// furnish puts files of the room in place of those that are not here. It
// changes nodes, and tells whether it did.
func (r *room) furnish(n *yaml.Node, in string) (changed bool) {
	if n == nil {
		return false
	}
	if n.Kind != yaml.MappingNode {
		for _, part := range n.Content {
			changed = r.furnish(part, in) || changed
		}
		return changed
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := camel(n.Content[i].Value), n.Content[i+1]
		file, is := substitute(in, name)
		if !is || value.Kind != yaml.ScalarNode {
			changed = r.furnish(value, name) || changed
			continue
		}
		if _, err := os.Stat(value.Value); err != nil {
			n.Content[i+1] = quoted(filepath.Join(r.folder, file))
			changed = true
		}
	}
	return changed
}

// substitute names the file for a field of a message that is in a field.
func substitute(in, name string) (file string, is bool) {
	switch {
	case name == "filename" && in == "privateKey":
		return keyFile, true
	case name == "filename" && in == "crl":
		return revokedFile, true
	case name == "filename":
		return certificateFile, true
	case name == "path" && in == "watchedDirectory":
		return "", true
	case name == "path" && (in == "pathConfigSource" || in == "sdsConfig" || in == "edsConfig"):
		return secretsFile, true
	default:
		return "", false
	}
}

// furnishSet does so for a set, whose text changes by it.
func (r *room) furnishSet(s *set) {
	changed := false
	for _, found := range s.resources {
		changed = r.furnish(found.node, "") || changed
	}
	if s.bootstrap != nil { // whose secrets the clusters may name
		changed = r.furnish(field(field(s.bootstrap, "static_resources"), "secrets"), "") || changed
	}
	if changed {
		s.verbatim = nil
	}
}
