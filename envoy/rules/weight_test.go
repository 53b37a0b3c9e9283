package rules

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// wire returns the bytes of a field, again and again.
func wire(number protowire.Number, count int, data []byte) []byte {
	return bytes.Repeat(protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), data), count)
}

// TestExcessOfOne: a resource may have many messages if they are those of endpoints.
func TestExcessOfOne(t *testing.T) {
	const checks, locality, lbEndpoint, metadata = 8, 2, 2, 3
	small := []byte{0x08, 0x80, 1}
	full := wire(metadata, endpointMessages, small)
	for what, c := range map[string]struct {
		of   string
		data []byte
		want string
	}{
		"messages":              {Cluster, wire(checks, maxMessages, small), ""},
		"one more":              {Cluster, wire(checks, maxMessages+1, small), "it has 200001 messages with 0 endpoints, and no more than 200000 are taken"},
		"messages of endpoints": {Assignment, wire(locality, 1, wire(lbEndpoint, maxMessages/endpointMessages, full)), ""},
		"empty":                 {Cluster, wire(checks, 1000, nil), "it has 1000 messages in 2000 bytes"},
	} {
		t.Run(what, func(t *testing.T) {
			if got := Excess(c.of, c.data); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
