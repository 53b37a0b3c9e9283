package xds

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/rules"
)

// Bounds of one stream: the number of unsent ACKs and NACKs at which it stops
// receiving, and the time that sending one message may take.
const (
	maxBacklog  = 64
	sendTimeout = 30 * time.Second
)

// standsAfter is the time after which a silent stream counts as connected: in delta, the server
// may have nothing new to say.
const standsAfter = 5 * time.Second

// dialect is a variant of the protocol on one stream. All methods but handle are called with
// Source.mu.
type dialect[Req, Res any] interface {
	due(now time.Time) time.Duration // time until a request is due; negative: never
	next(now time.Time) *Req
	handle(response *Res, excess string) error // an error does not end the stream
	backlog() int                              // how many ACKs and NACKs wait to be sent
}

// stream runs one stream with a server until it ends.
func (c *channel) stream(ctx context.Context, server int) (good bool, err error) {
	service := c.source.settings.api.GetGrpcServices()[server]
	conn, err := c.source.dial(server)
	if err != nil {
		return false, err
	}
	defer conn.Close() //nolint:errcheck // nothing is left to do
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if ctx, err = withMetadata(ctx, service); err != nil {
		return false, err
	}
	timeout := defaultOpenTimeout
	if service.GetTimeout().AsDuration() > 0 {
		timeout = service.GetTimeout().AsDuration()
	}
	late := time.AfterFunc(timeout, func() { cancel(fmt.Errorf("no connection within %s", timeout)) })
	talk, err := c.dial(ctx, conn)
	if late.Stop(); err == nil {
		server := service.GetGoogleGrpc().GetTargetUri()
		c.open(server)
		stands := time.AfterFunc(standsAfter, c.stand)
		good, err = talk(ctx, cancel)
		stands.Stop()
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return good, err
}

// dial opens the stream for this channel's types, and returns the function that runs
// it.
func (c *channel) dial(ctx context.Context, conn *grpc.ClientConn) (func(context.Context, context.CancelCauseFunc) (bool, error), error) {
	ads := discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
	cds := clusterservice.NewClusterDiscoveryServiceClient(conn)
	eds := endpointservice.NewEndpointDiscoveryServiceClient(conn)
	var state func(context.Context, ...grpc.CallOption) (grpc.BidiStreamingClient[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse], error)
	var delta func(context.Context, ...grpc.CallOption) (grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse], error)
	switch {
	case c.source.settings.aggregated:
		state, delta = ads.StreamAggregatedResources, ads.DeltaAggregatedResources
	case c.tables[0].typeURL == rules.Cluster:
		state, delta = cds.StreamClusters, cds.DeltaClusters
	default:
		state, delta = eds.StreamEndpoints, eds.DeltaEndpoints
	}
	if c.source.settings.delta {
		s, err := delta(ctx)
		return func(ctx context.Context, cancel context.CancelCauseFunc) (bool, error) {
			return exchange(ctx, cancel, c, s, newDeltaStream(c))
		}, err
	}
	s, err := state(ctx)
	return func(ctx context.Context, cancel context.CancelCauseFunc) (bool, error) {
		return exchange(ctx, cancel, c, s, newStateStream(c))
	}, err
}

// exchange receives and answers until the stream ends. good is set at the first response.
func exchange[Req, Res any](ctx context.Context, cancel context.CancelCauseFunc, c *channel,
	stream grpc.BidiStreamingClient[Req, Res], d dialect[Req, Res],
) (good bool, err error) {
	sent := make(chan struct{}, 1) // a message was sent
	spoken := make(chan struct{})
	go func() {
		defer close(spoken)
		sendDue(ctx, cancel, c, stream, d, sent)
	}()
	defer func() {
		cancel(nil)
		<-spoken
	}()
	for {
		response := new(Res)
		in := &incoming{message: any(response).(proto.Message)} //nolint:forcetypeassert // all are
		if err := stream.RecvMsg(in); err != nil {
			return good, withAdvice(err)
		}
		good = true
		receive(ctx, c, d, response, in.excess, sent)
	}
}

// receive accepts a response, and waits while too many ACKs and NACKs are unsent.
func receive[Req, Res any](ctx context.Context, c *channel, d dialect[Req, Res], response *Res, excess string, sent chan struct{}) {
	err := d.handle(response, excess)
	c.source.mu.Lock()
	waiting := d.backlog()
	c.source.mu.Unlock()
	if err != nil {
		c.ignoredPace.Warn(time.Now(), &c.source.options.Log, "upstream_ignored").Str("source", c.source.options.Name).Err(err).
			Msg("a response of the management server is ignored")
	}
	notify(c.wake)
	for waiting > maxBacklog && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-sent:
		}
		c.source.mu.Lock()
		waiting = d.backlog()
		c.source.mu.Unlock()
	}
}

// sendDue sends due requests, as fast as the rate limit allows. It builds each request only when
// it can send it, so that it is current.
func sendDue[Req, Res any](ctx context.Context, cancel context.CancelCauseFunc, c *channel,
	stream grpc.BidiStreamingClient[Req, Res], d dialect[Req, Res], sent chan struct{},
) {
	for ctx.Err() == nil {
		c.source.mu.Lock()
		due := d.due(time.Now())
		c.source.mu.Unlock()
		if due < 0 {
			due = time.Hour
		}
		if due > 0 {
			c.sleep(ctx, due, true)
			continue
		}
		if wait := take(c.limiter, time.Now()); wait > 0 {
			c.sleep(ctx, wait, false)
			continue
		}
		c.source.mu.Lock()
		request := d.next(time.Now())
		c.source.mu.Unlock()
		if request == nil {
			continue
		}
		stuck := time.AfterFunc(sendTimeout, func() { cancel(errStuck) })
		err := stream.Send(request)
		stuck.Stop()
		if err != nil {
			return // Recv returns the reason
		}
		notify(sent)
	}
}

// larger is the advice for larger responses.
const larger = "have the server send less at once, or raise limits.max_message_bytes in hdsd's configuration and restart it"

// withAdvice adds advice to the error of a response that is too large.
func withAdvice(err error) error {
	if status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max") {
		return fmt.Errorf("%w: "+larger, err)
	}
	return err
}

var errStuck = fmt.Errorf("the server has not taken a request within %s", sendTimeout)
