package eds

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/internal/fields"
)

// ackFields are the fields of an ACK, besides names.
type ackFields struct{ typeURL, nonce, version protowire.Number }

// By delta, an ACK has no version.
var stateACK, deltaACK = ackFields{typeURL: 4, nonce: 5, version: 1}, ackFields{typeURL: 2, nonce: 6}

// acknowledges returns the subscription whose latest response an encoded request accepts, and
// the nonce, if the request says nothing else. Else it returns nil, and the request has to be
// decoded. Most requests are such ACKs. This decodes them without garbage.
func (st *stream) acknowledges(of *ackFields, parts ...[]byte) (*subscription, string) {
	var typeURL, nonce []byte
	for _, part := range parts {
		for len(part) > 0 {
			f, err := fields.Next(part)
			switch {
			case err != nil:
				return nil, ""
			case f.Is(of.typeURL):
				typeURL = f.Value
			case f.Is(of.nonce):
				nonce = f.Value
			case !f.Is(of.version) || !utf8.Valid(f.Value):
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

// latestNonce is that of the latest response of a subscription; empty before.
func latestNonce(u *subscription) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.delivery.nonce
}
