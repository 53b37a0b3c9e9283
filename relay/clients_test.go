package relay

import (
	"strings"
	"testing"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/envoy/fields"
	"hdsd/relay/message"
)

// TestARefusedSecretIsNotQuoted: a client may quote what it refuses.
func TestARefusedSecretIsNotQuoted(t *testing.T) {
	t.Parallel()
	c := converse(t)
	refusal := fields.AppendText(nil, 2, "bad key: MIIEvQ")
	for typeURL, quoted := range map[string]bool{resourcev3.SecretType: false, resourcev3.ListenerType: true} {
		c.note(&message.Head{TypeURL: typeURL, Refusal: refusal})
		for _, client := range c.clients(nil) {
			if client.TypeURL == typeURL && (client.LastError == "" || strings.Contains(client.LastError, "MIIEvQ") != quoted) {
				t.Errorf("%s: %q", typeURL, client.LastError)
			}
		}
	}
	if n := len(c.clients(nil)); n != 2 {
		t.Errorf("%d types are listed", n)
	}
}
