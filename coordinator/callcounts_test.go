package coordinator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// failing is a stream that fails from its third message on, in each direction.
type failing struct {
	grpc.ServerStream
	received, sent int
}

var errOver = errors.New("over")

func (f *failing) RecvMsg(any) error { f.received++; return f.over(f.received) }
func (f *failing) SendMsg(any) error { f.sent++; return f.over(f.sent) }

func (f *failing) over(n int) error {
	if n > 2 {
		return errOver
	}
	return nil
}

func TestCallCounts(t *testing.T) {
	registry := prometheus.NewRegistry()
	c := newCallCounts(registry)
	stream := func(info *grpc.StreamServerInfo, answer error) {
		info.FullMethod = "/a.B/" + streamType(info)
		err := c.stream(nil, &failing{}, info, func(_ any, s grpc.ServerStream) error {
			for s.RecvMsg(nil) == nil {
			}
			return errors.Join(s.SendMsg(nil), answer)
		})
		if !errors.Is(err, answer) {
			t.Errorf("the call ended with %v, want %v", err, answer)
		}
	}
	stream(&grpc.StreamServerInfo{IsClientStream: true, IsServerStream: true}, nil)
	stream(&grpc.StreamServerInfo{IsServerStream: true}, context.Canceled)
	stream(&grpc.StreamServerInfo{IsClientStream: true}, errOver)
	for _, answer := range []error{nil, status.Error(codes.NotFound, "")} {
		_, err := c.unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}, func(context.Context, any) (any, error) { return nil, answer })
		if !errors.Is(err, answer) {
			t.Errorf("the call ended with %v, want %v", err, answer)
		}
	}
	const want = `
# HELP hdsd_grpc_server_handled_total gRPC calls that ended, by status.
# TYPE hdsd_grpc_server_handled_total counter
hdsd_grpc_server_handled_total{grpc_code="Canceled",grpc_method="server_stream",grpc_service="a.B",grpc_type="server_stream"} 1
hdsd_grpc_server_handled_total{grpc_code="NotFound",grpc_method="C",grpc_service="a.B",grpc_type="unary"} 1
hdsd_grpc_server_handled_total{grpc_code="OK",grpc_method="C",grpc_service="a.B",grpc_type="unary"} 1
hdsd_grpc_server_handled_total{grpc_code="OK",grpc_method="bidi_stream",grpc_service="a.B",grpc_type="bidi_stream"} 1
hdsd_grpc_server_handled_total{grpc_code="Unknown",grpc_method="client_stream",grpc_service="a.B",grpc_type="client_stream"} 1
# HELP hdsd_grpc_server_msg_received_total Messages of gRPC calls that were received.
# TYPE hdsd_grpc_server_msg_received_total counter
hdsd_grpc_server_msg_received_total{grpc_method="C",grpc_service="a.B",grpc_type="unary"} 2
hdsd_grpc_server_msg_received_total{grpc_method="bidi_stream",grpc_service="a.B",grpc_type="bidi_stream"} 2
hdsd_grpc_server_msg_received_total{grpc_method="client_stream",grpc_service="a.B",grpc_type="client_stream"} 2
hdsd_grpc_server_msg_received_total{grpc_method="server_stream",grpc_service="a.B",grpc_type="server_stream"} 2
# HELP hdsd_grpc_server_msg_sent_total Messages of gRPC calls that were sent.
# TYPE hdsd_grpc_server_msg_sent_total counter
hdsd_grpc_server_msg_sent_total{grpc_method="C",grpc_service="a.B",grpc_type="unary"} 1
hdsd_grpc_server_msg_sent_total{grpc_method="bidi_stream",grpc_service="a.B",grpc_type="bidi_stream"} 1
hdsd_grpc_server_msg_sent_total{grpc_method="client_stream",grpc_service="a.B",grpc_type="client_stream"} 1
hdsd_grpc_server_msg_sent_total{grpc_method="server_stream",grpc_service="a.B",grpc_type="server_stream"} 1
# HELP hdsd_grpc_server_started_total gRPC calls that began.
# TYPE hdsd_grpc_server_started_total counter
hdsd_grpc_server_started_total{grpc_method="C",grpc_service="a.B",grpc_type="unary"} 2
hdsd_grpc_server_started_total{grpc_method="bidi_stream",grpc_service="a.B",grpc_type="bidi_stream"} 1
hdsd_grpc_server_started_total{grpc_method="client_stream",grpc_service="a.B",grpc_type="client_stream"} 1
hdsd_grpc_server_started_total{grpc_method="server_stream",grpc_service="a.B",grpc_type="server_stream"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "hdsd_grpc_server_handled_total",
		"hdsd_grpc_server_msg_received_total", "hdsd_grpc_server_msg_sent_total", "hdsd_grpc_server_started_total"); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(c.duration); n != 4 {
		t.Errorf("%d methods have a time, want 4", n)
	}
}

// BenchmarkCounts measures the cost of counting a message in each direction.
func BenchmarkCounts(b *testing.B) {
	b.ReportAllocs()
	c := newCallCounts(prometheus.NewRegistry())
	info := &grpc.StreamServerInfo{FullMethod: "/a.B/C", IsClientStream: true, IsServerStream: true}
	_ = c.stream(nil, silent{}, info, func(_ any, s grpc.ServerStream) error {
		for b.Loop() {
			_, _ = s.RecvMsg(nil), s.SendMsg(nil)
		}
		return nil
	})
}

// silent is a stream that does nothing.
type silent struct{ grpc.ServerStream }

func (silent) RecvMsg(any) error { return nil }
func (silent) SendMsg(any) error { return nil }
