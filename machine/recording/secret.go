package recording

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/internal/redact"
)

// hider replaces secrets by hashes with a key. It is immutable.
type hider struct {
	key         [32]byte
	replacement redact.Replacement
}

func newHider(key [32]byte) *hider {
	h := &hider{key: key}
	h.replacement = redact.Replacement{Text: h.text, Value: h.value, Message: h.message}
	return h
}

// sum returns the hash of a secret.
func (h *hider) sum(secret []byte) []byte {
	hash := hmac.New(sha256.New, h.key[:])
	hash.Write(secret)
	return hash.Sum(nil)
}

// letters are valid in headers, paths and names.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// text replaces a text by another of the same length. In a field for hexadecimal digits, digits stay digits,
// and invalid text stays invalid.
func (h *hider) text(secret string, hexField bool) string {
	alphabet, out, sum := letters, make([]byte, len(secret)), h.sum([]byte(secret))
	if hexField {
		if _, err := hex.DecodeString(secret); err == nil {
			alphabet = letters[52:62] // decimal digits
		}
	}
	for i := range out {
		if i > 0 && i%len(sum) == 0 {
			sum = h.sum(sum)
		}
		out[i] = alphabet[int(sum[i%len(sum)])%len(alphabet)]
	}
	if hexField && alphabet == letters && len(out) > 0 {
		out[0] = 'z'
	}
	return string(out)
}

// value replaces the value of an Any of unknown type.
func (h *hider) value(secret []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte(hex.EncodeToString(h.sum(secret))))
}

// number replaces a number.
func (h *hider) number(secret uint64) uint64 {
	return binary.BigEndian.Uint64(h.sum(binary.BigEndian.AppendUint64(nil, secret)))
}

// message replaces the secrets of a TLS certificate. It reports false for other messages.
func (h *hider) message(m protoreflect.Message) bool {
	c, ok := m.Interface().(*tlsv3.TlsCertificate)
	if ok {
		h.certificate(c)
	}
	return ok
}

// certificate replaces the inline keys and passwords of a certificate. It replaces a valid pair of certificate
// and key by another valid pair, since specifiers hold only valid ones. Names of files stay.
func (h *hider) certificate(c *tlsv3.TlsCertificate) {
	sources := []*corev3.DataSource{c.GetPassword(), c.GetPkcs12()}
	key := content(c.GetPrivateKey())
	if _, err := tls.X509KeyPair(content(c.GetCertificateChain()), key); err == nil {
		chain, replacement := h.pair(key)
		c.CertificateChain, c.PrivateKey = inline(chain), inline(replacement)
	} else {
		sources = append(sources, c.GetPrivateKey())
	}
	for _, d := range sources {
		if secret := content(d); secret != nil {
			d.Specifier = inline([]byte(h.text(string(secret), false))).Specifier
		}
	}
	if a := c.GetPrivateKeyProvider().GetTypedConfig(); a != nil {
		c.PrivateKeyProvider.ConfigType = &tlsv3.PrivateKeyProvider_TypedConfig{TypedConfig: &anypb.Any{TypeUrl: a.GetTypeUrl(), Value: h.value(a.GetValue())}}
	}
}

// content returns the inline content of a data source, or nil.
func content(d *corev3.DataSource) []byte {
	switch s := d.GetSpecifier().(type) {
	case *corev3.DataSource_InlineString:
		return []byte(s.InlineString)
	case *corev3.DataSource_InlineBytes:
		return s.InlineBytes
	}
	return nil
}

// inline returns a data source with inline content.
func inline(text []byte) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: string(text)}}
}

// pair derives a certificate and its key from a secret.
func (h *hider) pair(secret []byte) (chain, key []byte) {
	private := ed25519.NewKeyFromSeed(h.sum(secret))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0)}
	// These calls cannot fail for an Ed25519 key.
	signed, _ := x509.CreateCertificate(nil, template, template, private.Public(), private)
	encoded, _ := x509.MarshalPKCS8PrivateKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// redacted returns a message without secrets: a copy if it has secrets.
func redacted[M proto.Message](h *hider, m M) M {
	if !m.ProtoReflect().IsValid() {
		return m
	}
	clone := proto.CloneOf(m)
	if !redact.Replace(clone, &h.replacement) {
		return m
	}
	return clone
}
