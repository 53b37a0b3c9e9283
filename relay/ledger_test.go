package relay

import (
	"fmt"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/fields"
)

// conversation is a stream of a client, to whom a control plane says clusters by delta.
type conversation struct {
	*testing.T
	*stream
}

func converse(t *testing.T) conversation {
	t.Helper()
	return conversation{t, &stream{server: benchServer(), method: method{delta: true}, nodeID: "n", wake: make(chan struct{}, 1)}}
}

// say sends a cluster web that differs by its alt_stat_name.
func (c conversation) say(nonce, text string) {
	c.Helper()
	wire := fields.AppendBytes(nil, 2, resourceOf("web", fields.AppendText(fields.AppendText(nil, 1, "web"), 28, text)))
	wire = fields.AppendText(fields.AppendText(wire, 4, clusters.typeURL()), 5, nonce)
	if _, err := c.respond(arrival{typeURL: clusters.typeURL(), wire: wire}); err != nil {
		c.Fatal(err)
	}
}

func (c conversation) answer(nonce string, refuse bool) {
	c.Helper()
	r := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusters.typeURL(), ResponseNonce: nonce}
	if refuse {
		r.ErrorDetail = &status.Status{Message: "no"}
	}
	wire, err := proto.Marshal(r)
	if err == nil {
		_, err = c.sendRequest(wire)
	}
	if err != nil {
		c.Fatal(err)
	}
}

// TestAClientKeepsWhatItAcceptedLast when it refuses a resource, however many it has not
// answered.
func TestAClientKeepsWhatItAcceptedLast(t *testing.T) {
	t.Parallel()
	for refused := 1; refused <= 4; refused++ {
		c := converse(t)
		for i := range refused {
			c.say(fmt.Sprint(i+1), fmt.Sprint("version ", i+1))
		}
		for i := 1; i < refused; i++ {
			c.answer(fmt.Sprint(i), false)
		}
		c.answer(fmt.Sprint(refused), true)
		held := c.ledgers[clusters].holdings.get("web")
		switch {
		case refused == 1 && held != nil:
			t.Error("it refused the first one, and has one")
		case refused > 1 && (held == nil || !hasText(held.item.body.wire, 28, fmt.Sprint("version ", refused-1))):
			t.Errorf("it refused the %d. one, and has %v", refused, held)
		}
		if len(c.ledgers[clusters].doubts.good) != 0 {
			t.Error("it has answered all, and something is open")
		}
		c.close()
		c.server.memory.forgetAll()
		if n := c.server.stock.size(); n != 0 {
			t.Errorf("after it has gone, %d resources are kept", n)
		}
	}
}

// TestVersionsThatAreRefusedLeaveTheOneBefore, also if all are sent before the first is refused.
func TestVersionsThatAreRefusedLeaveTheOneBefore(t *testing.T) {
	t.Parallel()
	c := converse(t)
	for i := range 4 {
		c.say(fmt.Sprint(i), fmt.Sprint("version ", i))
	}
	for i := range 4 {
		c.answer(fmt.Sprint(i), i > 0)
	}
	l := c.ledgers[clusters]
	if held := l.holdings.get("web"); held == nil || !hasText(held.item.body.wire, 28, "version 0") || len(l.doubts.good)+len(l.doubts.refused) != 0 {
		t.Errorf("it has %v, and may have %v, want version 0", held, l.doubts.refused)
	}
}

// TestWhatWasRemovedDoesNotComeBack when the client refuses what came after it.
func TestWhatWasRemovedDoesNotComeBack(t *testing.T) {
	t.Parallel()
	c := converse(t)
	c.say("1", "version 1")
	wire := fields.AppendText(fields.AppendText(fields.AppendText(nil, 6, "web"), 4, clusters.typeURL()), 5, "2")
	if _, err := c.respond(arrival{typeURL: clusters.typeURL(), wire: wire}); err != nil {
		t.Fatal(err)
	}
	c.say("3", "version 3")
	c.answer("1", false)
	c.answer("2", false)
	c.answer("3", true)
	if l := c.ledgers[clusters]; l.holdings.get("web") != nil || len(l.doubts.good) != 0 {
		t.Error("what the control plane has removed counts as there")
	}
}

// TestANameAskedForTwiceIsForgotten, too, when the client that came back has gone.
func TestANameAskedForTwiceIsForgotten(t *testing.T) {
	t.Parallel()
	c := converse(t)
	c.say("1", "version 1")
	c.answer("1", false)
	c.close()
	second := conversation{t, &stream{server: c.server, method: method{delta: true}, nodeID: "n", wake: make(chan struct{}, 1)}}
	wire, err := proto.Marshal(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusters.typeURL(), ResourceNamesSubscribe: []string{"web", "web"}})
	if err == nil {
		_, err = second.sendRequest(wire)
	}
	if err != nil {
		t.Fatal(err)
	}
	if second.ledgers[clusters].holdings.get("web") == nil {
		t.Error("what the client had is not remembered")
	}
	second.close()
	c.server.memory.forgetAll()
	if n := c.server.stock.size(); n != 0 {
		t.Errorf("after it has gone, %d resources are kept", n)
	}
}

func (m *memory) forgetAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.byExpiry.Len() > 0 {
		m.forget(m.byExpiry.Front().Value.(*part))
	}
}
