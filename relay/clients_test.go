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
		for _, one := range c.clients(nil) {
			if one.TypeURL == typeURL && (one.LastError == "" || strings.Contains(one.LastError, "MIIEvQ") != quoted) {
				t.Errorf("%s: %q", typeURL, one.LastError)
			}
		}
	}
	if n := len(c.clients(nil)); n != 2 {
		t.Errorf("%d types are listed", n)
	}
}
