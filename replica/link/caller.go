package link

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	replicav1 "hdsd/gen/hdsd/replica/v1"
)

// MaxMessage bounds a frame, in bytes.
const MaxMessage = 256 << 20

// How long a call may take to connect, and then to be answered by a hello; and the time between two calls.
const (
	connectPatience = 2 * time.Second
	helloPatience   = 5 * time.Second
	minBackoff      = 50 * time.Millisecond
	maxBackoff      = time.Second
)

// Time without a frame before a ping, and then for its answer. gRPC has clients ping every 10 seconds at
// most. A server may ping more often, so it is the server that notices a dead peer first, and lets the peer's call end.
const (
	clientPing  = 10 * time.Second
	serverPing  = 4 * time.Second
	pingTimeout = 3 * time.Second
	leastPing   = 5 * time.Second // of clients; more often is an offence
)

// Directions of megabytes need no further round trip within these windows.
const (
	streamWindow     = 4 << 20
	connectionWindow = 8 << 20
)

// ServerOptions returns the options that the grpc.Server of Links needs beside its credentials.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(boundedCodec), grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage),
		grpc.StaticStreamWindowSize(streamWindow), grpc.StaticConnWindowSize(connectionWindow),
		grpc.ConnectionTimeout(helloPatience),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: serverPing, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: leastPing, PermitWithoutStream: true}),
	}
}

// caller calls a replica at an address.
type caller struct {
	links       *Links
	id, address string
}

// run calls again and again, until the context ends. After a link of some duration it does so at once, so the status soon
// tells whether the other process is gone.
func (c *caller) run(ctx context.Context) {
	failures, wait := 0, time.Duration(0)
	for {
		began := time.Now()
		opened, err := c.call(ctx)
		if ctx.Err() != nil {
			return
		}
		if opened {
			failures = 0
		} else {
			failures++
			c.fail(err, failures)
		}
		if wait = min(max(2*wait, minBackoff), maxBackoff); opened && time.Since(began) >= maxBackoff {
			wait = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// fail notes a call that has opened no link. It logs the first of several.
func (c *caller) fail(err error, failures int) {
	c.links.note(c.id, func(s *Status) {
		if !s.Connected {
			s.Err = reason(err).Error()
		}
	})
	if failures == 1 {
		c.links.options.Log.Warn().Str("event", "replica_unreachable").Str("replica", c.id).Str("address", c.address).Err(reason(err)).
			Msg("another replica does not answer; hdsd tries again at least once a second")
	}
}

// call makes one call, until its link ends. It reports whether that has opened.
func (c *caller) call(ctx context.Context) (opened bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conn, err := c.dial()
	if err != nil {
		return false, err
	}
	defer conn.Close()
	timer := time.AfterFunc(connectPatience+helloPatience, func() { cancel(errors.New("the replica accepts the call and does not answer it")) })
	defer timer.Stop()
	s, hello, err := c.greet(ctx, conn)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return false, err
	}
	timer.Stop()
	k, err := c.links.open(hello, s)
	if err != nil {
		return false, err
	}
	select {
	case <-k.ending:
	case <-ctx.Done():
		k.end(errClosed)
	}
	cancel(nil)
	<-k.ended
	return true, nil
}

// greet opens a stream and exchanges hellos.
func (c *caller) greet(ctx context.Context, conn *grpc.ClientConn) (stream, *replicav1.Hello, error) {
	s, err := replicav1.NewLinksClient(conn).Link(ctx)
	if err != nil {
		return nil, nil, err
	}
	o := &c.links.options
	_ = s.Send(o.hello(c.id)) // Recv has the reason of a failure
	f, err := s.Recv()
	if err != nil {
		return nil, nil, err
	}
	hello, err := o.helloOf(f)
	if err != nil {
		return nil, nil, err
	}
	return s, hello, o.checkDialled(hello, c.id, c.address)
}

func (c *caller) dial() (*grpc.ClientConn, error) {
	o := &c.links.options
	options := []grpc.DialOption{
		grpc.WithStaticStreamWindowSize(streamWindow), grpc.WithStaticConnWindowSize(connectionWindow),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(boundedCodec)),
	}
	if o.Dial != nil {
		options = append(options, grpc.WithContextDialer(o.Dial))
	}
	transport := o.Credentials
	if transport == nil {
		transport = insecure.NewCredentials()
	}
	return Dial(c.address, transport, options...)
}

// Dial makes a connection to a replica. It connects at the first call.
func Dial(address string, c credentials.TransportCredentials, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(c),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: minBackoff, Multiplier: 2, MaxDelay: maxBackoff}, MinConnectTimeout: connectPatience,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: clientPing, Timeout: pingTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
	}
	return grpc.NewClient("passthrough:///"+address, append(options, more...)...)
}
