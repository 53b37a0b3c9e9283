package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"hdsd/health"
	"hdsd/internal/packed"
)

// Query selects transitions. An empty field matches any.
type Query struct {
	Cluster  string
	Versions []string // all names of Cluster, itself included; nil: only that. They may differ from page to page
	Address  string
	Filter   health.Filter // by the endpoint's place, and the health after the transition
	Checker  string        // a checker with a vote in the transition
	Start    time.Time     // included
	End      time.Time     // not included

	NewestFirst bool
	Limit       int    // 1,000 by default, at most 10,000
	Token       string // token of the previous page; only Limit and Versions may differ from its query
}

// A page token is the recorded time of the last transition shown, and a checksum over that and
// the query, so that it fits no other query.
const tokenSize = 16

func (q *Query) token(last uint64) string {
	return base64.RawURLEncoding.EncodeToString(append(key(last), q.sum(last)...))
}

func (q *Query) sum(last uint64) []byte {
	b := append([]byte("transitions 1\x00"), key(last, nanos(q.Start), q.end())...)
	if q.NewestFirst {
		b = append(b, 1)
	}
	b = packed.AppendText(packed.AppendText(b, q.Cluster), q.Address)
	if !q.Filter.Any() {
		b = fmt.Appendf(b, "%t %q", q.Filter.Unhealthy, q.Filter.Locality)
	}
	if q.Checker != "" {
		b = packed.AppendText(append(b, " by "...), q.Checker)
	}
	sum := sha256.Sum256(b)
	return sum[:8]
}

// position returns the recorded time at which the previous page ended, or 0.
func (q *Query) position() (uint64, error) {
	if q.Token == "" {
		return 0, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(q.Token)
	if err != nil || len(b) != tokenSize {
		return 0, ErrBadToken
	}
	last := binary.BigEndian.Uint64(b)
	if last == 0 || !bytes.Equal(b[8:], q.sum(last)) {
		return 0, ErrBadToken
	}
	return last, nil
}
