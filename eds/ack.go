package eds

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/envoy/fields"
)

// ackFields are the fields of an ACK, besides names.
type ackFields struct{ typeURL, nonce, version protowire.Number }

// By delta, an ACK has no version.
var stateACK, deltaACK = ackFields{
	typeURL: fields.RequestTypeURL, nonce: fields.RequestNonce, version: fields.RequestVersion,
}, ackFields{typeURL: fields.DeltaRequestTypeURL, nonce: fields.DeltaRequestNonce}

// acknowledges returns the subscription whose latest response an encoded request accepts, and
// the nonce, if the request has no other content. Otherwise it returns nil, and the request has
// to be decoded. Most requests are such ACKs, which it reads without garbage.
func (st *stream) acknowledges(layout *ackFields, parts ...[]byte) (*subscription, string) {
	var typeURL, nonce []byte
	for _, part := range parts {
		for len(part) > 0 {
			f, err := fields.Next(part)
			switch {
			case err != nil:
				return nil, ""
			case f.Is(layout.typeURL):
				typeURL = f.Value
			case f.Is(layout.nonce):
				nonce = f.Value
			case !f.Is(layout.version) || !utf8.Valid(f.Value):
				return nil, ""
			}
			part = part[len(f.Raw):]
		}
	}
	clusters, assignments := st.pair()
	for _, u := range [...]*subscription{clusters, assignments} {
		if u == nil || u.table.typeURL != string(typeURL) {
			continue
		}
		if latest := latestNonce(u); latest != "" && latest == string(nonce) {
			return u, latest
		}
	}
	return nil, ""
}

// latestNonce returns the nonce of a subscription's latest response; empty before.
func latestNonce(u *subscription) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.delivery.nonce
}
