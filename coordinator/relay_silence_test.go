package coordinator_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// replace serves other streams at the address of a management server that stays away.
func (m *management) replace(options ...grpc.ServerOption) {
	m.t.Helper()
	listener, err := net.Listen("tcp", m.address)
	if err != nil {
		m.t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	m.t.Cleanup(func() { server.Stop(); serving.Wait() })
}

// TestDeafControlPlane covers that hdsd ends the streams, so that they do not hold bytes in flight for long.
func TestDeafControlPlane(t *testing.T) {
	t.Parallel()
	m := newManagement(t)
	m.replace(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		<-stream.Context().Done()
		return nil
	}))
	s := newSite(t, t.TempDir(), relaying(m, ""), "")
	s.ready()
	had := map[string]string{}
	for i := range 10_000 {
		had[fmt.Sprintf("%0100d", i)] = "1"
	}
	c := s.newClient(true, "edge-1")
	c.talker.ask(resourcev3.EndpointType, []string{"web"}, had)
	c.talker.ask(resourcev3.ListenerType, nil, had) // waits, and is in flight
	s.eventually("bytes in flight", func() bool { return s.scrape().sum("hdsd_bytes_in_flight") > 0 })
	go c.run()
	var err error
	s.eventually("the end of the stream", func() bool {
		select {
		case err = <-c.ended:
			return true
		default:
			return false
		}
	})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "has not read") {
		t.Errorf("the stream ends with %v", err)
	}
	s.eventually("no bytes in flight", func() bool { return s.scrape().sum("hdsd_bytes_in_flight") == 0 })
}

// TestDeafClient covers that hdsd cuts off the client, and serves others.
func TestDeafClient(t *testing.T) {
	t.Parallel()
	m := newManagement(t)
	m.come()
	var names []string
	for i := range 2_000 { // more than hdsd and grpc hold for a client that does not read
		names = append(names, fmt.Sprintf("%0100d", i))
	}
	m.says(byEDS(names...), endpoints("web", corev3.HealthStatus_UNKNOWN, "127.0.0.1:1"))
	s := newSite(t, t.TempDir(), relaying(m, ""), "")
	s.ready()
	deaf := s.newClient(true, "edge-1")
	deaf.talker.ask(resourcev3.ClusterType, nil, nil)
	other := s.client(true, "edge-2", "web")
	s.eventually("what another client has asked for", func() bool { return other.cluster(names[0]) != nil })
	streams := func(want float64) func() bool {
		return func() bool { return s.scrape().sum("hdsd_relay_streams") == want }
	}
	s.eventually("both", streams(2))
	s.eventually("the end of the first", streams(1))
	select {
	case err := <-other.ended:
		t.Errorf("the other client's stream ends with %v", err)
	default:
	}
}
