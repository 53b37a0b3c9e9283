package check

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/test/upstream"
)

type tcpProbe = corev3.HealthCheck_TcpHealthCheck

func exchange(send string, receive ...*corev3.HealthCheck_Payload) func(*base, *tcpProbe) {
	return func(c *base, h *tcpProbe) {
		h.Receive = receive
		if send != "" {
			h.Send = text(send)
		}
	}
}

func says(answer string) upstream.Behaviour {
	b := upstream.Healthy()
	b.Raw = []byte(answer)
	return b
}

func TestProbeTCP(t *testing.T) {
	const ping = "70696e67"
	for _, test := range []struct {
		name      string
		behaviour upstream.Behaviour
		edit      func(*base, *tcpProbe)
		want      seen // a timeout is shortened
	}{
		{"connects", upstream.Healthy(), exchange(""), seen{up, 0}},
		{"connects to what hangs", upstream.Hang(), exchange(""), seen{up, 0}},
		{"refused", upstream.Refuse(), exchange(""), seen{down, 0}},
		{"echoed", upstream.Healthy(), exchange(ping, text(ping)), seen{up, 0}},
		{"in order, with others between", says("one and two"), exchange(ping, payload("one"), payload("two")), seen{up, 0}},
		{"in another order", says("two and one"), exchange(ping, payload("one"), payload("two")), seen{timeout, 0}},
		{"something else", says("nothing"), exchange(ping, payload("one")), seen{timeout, 0}},
		{"far too much of something else", says(strings.Repeat("x", 2*maxTCPAnswer)), exchange(ping, payload("one")), seen{timeout, 0}},
		{"hangs", upstream.Hang(), exchange(ping, payload("one")), seen{timeout, 0}},
		{"closes", upstream.Raw(nil), exchange(ping, payload("one")), seen{down, 0}},
		{"resets", upstream.Reset(), exchange(ping, payload("one")), seen{down, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			u := startUpstream(t, upstream.Options{Protocol: upstream.TCP, Behaviour: test.behaviour})
			p := startPool(t)
			apply(t, p, one(tcpHealthCheck(test.edit, func(c *base, _ *tcpProbe) {
				if test.want.status == timeout {
					c.Timeout = durationpb.New(100 * time.Millisecond)
				}
			}), endpoint(u.Addr())))
			if test.want.status != down {
				waitFor(t, p, test.want)
				return
			}
			// As at the start: see it go up and come down again.
			u.Set(says("one"))
			waitFor(t, p, seen{up, 0})
			u.Set(test.behaviour)
			waitFor(t, p, test.want)
		})
	}
}

func TestReusesTCPConnection(t *testing.T) {
	u := startUpstream(t, upstream.Options{Protocol: upstream.TCP})
	p := startPool(t)
	apply(t, p, one(tcpHealthCheck(exchange("70", payload("p"))), endpoint(u.Addr())))
	waitFor(t, p, seen{up, 0})
	u.Set(says("p, but later")) // the connection goes on
	waitProbes(t, u, 5)
	if got := u.Stats().Connections; got != 1 {
		t.Errorf("%d connections", got)
	}
}

// On TCP, unlike HTTP, an upstream that closes a kept connection has failed.
func TestClosedTCPFails(t *testing.T) {
	u := startUpstream(t, upstream.Options{Protocol: upstream.TCP})
	p := startPool(t)
	apply(t, p, one(tcpHealthCheck(exchange("70", payload("p")), func(c *base, _ *tcpProbe) {
		c.NoTrafficInterval = durationpb.New(time.Hour)
	}), endpoint(u.Addr())))
	waitFor(t, p, seen{up, 0})
	u.Set(upstream.Refuse()) // drops it; no probe is due for an hour
	waitFor(t, p, seen{down, 0})
}

func TestNewTCPConnectionEachProbe(t *testing.T) {
	u := startUpstream(t, upstream.Options{Protocol: upstream.TCP})
	p := startPool(t)
	apply(t, p, one(tcpHealthCheck(exchange("70", payload("p")), func(c *base, _ *tcpProbe) {
		c.ReuseConnection = wrapperspb.Bool(false)
	}), endpoint(u.Addr())))
	waitProbes(t, u, 5)
	waitFor(t, p, seen{up, 0})
	if s := u.Stats(); s.Connections < 5 {
		t.Errorf("%d connections", s.Connections)
	}
}

func TestProxyProtocol(t *testing.T) {
	for version, want := range map[corev3.ProxyProtocolConfig_Version]string{
		corev3.ProxyProtocolConfig_V1: "PROXY TCP4 127.0.0.1 127.0.0.1 ",
		corev3.ProxyProtocolConfig_V2: "\r\n\r\n\x00\r\nQUIT\n \x00\x00\x00ping",
	} {
		check, err := newTCPCheck(&tcpProbe{
			Send: text("70696e67"), ProxyProtocolConfig: &corev3.ProxyProtocolConfig{Version: version},
		})
		if err != nil {
			t.Fatal(err)
		}
		u := startUpstream(t, upstream.Options{Protocol: upstream.TCP})
		c, err := net.Dial("tcp", u.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range 2 { // the header is not kept from one connection to the next
			got := string(check.request(c))
			if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "ping") || strings.Count(got, "ping") != 1 {
				t.Errorf("%s: got %q", version, got)
			}
		}
	}
}

// The rest of an answer may come after what was waited for: the connection
// goes on. A net.Pipe's Write returns when everything was read.
func TestRestOfTCPAnswer(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	dialed := 0
	p := startPool(t)
	p.net.dialer = func(context.Context, string, string) (net.Conn, error) {
		dialed++
		return here, nil
	}
	apply(t, p, one(tcpHealthCheck(exchange("70", payload("p"))), endpoint("127.0.0.1:1")))
	for probe := range 3 {
		if _, err := io.ReadFull(there, make([]byte, 1)); err != nil {
			t.Fatalf("probe %d: %v", probe, err)
		}
		for _, part := range []string{"p", "ong"} {
			if _, err := io.WriteString(there, part); err != nil {
				t.Fatalf("probe %d: %v", probe, err)
			}
		}
	}
	waitFor(t, p, seen{up, 0})
	if dialed != 1 {
		t.Errorf("%d connections", dialed)
	}
}
