package wire_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/internal/wire"
)

// TestRefusalsHaveTheirCode shows that grpc says of a refused message what it did.
func TestRefusalsHaveTheirCode(t *testing.T) {
	ended := make(chan error, 1)
	server := grpc.NewServer(wire.ServerOption(), grpc.MaxRecvMsgSize(64<<20), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		err := wire.Refusal(s.RecvMsg(&wrapperspb.StringValue{}))
		ended <- err
		return err
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	defer func() { server.Stop(); <-done }()
	on, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer on.Close()
	for _, c := range []struct {
		bytes int
		want  codes.Code
	}{{5 << 20, codes.ResourceExhausted}, {100, codes.OK}} {
		_ = on.Invoke(context.Background(), "/a/b", wrapperspb.String(strings.Repeat("x", c.bytes)), &wrapperspb.StringValue{})
		if err := <-ended; status.Code(err) != c.want {
			t.Errorf("%d bytes end with %v", c.bytes, err)
		}
	}
	for _, other := range []error{nil, status.Error(codes.Internal, "another"), context.Canceled} {
		if got := wire.Refusal(other); got != other { //nolint:errorlint // the same value
			t.Errorf("%v becomes %v", other, got)
		}
	}
}
