package coordinator

import (
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"hdsd/internal/wire"
)

// BenchmarkStreams sends messages over loopback, client and server in one
// process, to and from a server with and without what counts calls.
func BenchmarkStreams(b *testing.B) {
	for _, counted := range []bool{false, true} {
		name, options := "bare", []grpc.ServerOption{wire.ServerOption()}
		if counted {
			name, options = "counted", append(options, newCalls(prometheus.NewRegistry(), zerolog.Nop()).options()...)
		}
		b.Run("receive/"+name, func(b *testing.B) { benchStream(b, options, false) })
		b.Run("send/"+name, func(b *testing.B) { benchStream(b, options, true) })
	}
}

func benchStream(b *testing.B, options []grpc.ServerOption, sending bool) {
	messages := b.N
	message := wire.Bytes(make([]byte, 200))
	pass := func(send bool, m interface {
		SendMsg(any) error
		RecvMsg(any) error
	}) error {
		into := wire.Bytes{}
		for range messages {
			var err error
			if send {
				err = m.SendMsg(&message)
			} else {
				err = m.RecvMsg(&into)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	done := make(chan error, 1)
	server := grpc.NewServer(append(options, grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		err := pass(sending, stream)
		done <- err
		return err
	}))...)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.Codec())))
	if err != nil {
		b.Fatal(err)
	}
	defer connection.Close()
	stream, err := connection.NewStream(b.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/a/B")
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	if err := pass(!sending, stream); err != nil {
		b.Fatal(err)
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
