package check

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	minBackoff = 200 * time.Millisecond
	maxBackoff = 5 * time.Second
	maxMessage = 64 << 20
)

// Run checks what the coordinator assigns until ctx ends, and returns nil once
// everything has stopped. An error means that it could not start.
func Run(ctx context.Context, options Options) error {
	if err := options.complete(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := newPool(ctx, options.Dial, options.MaxDials)
	p.reports = options.Reports
	defer p.close()
	defer cancel()
	servers := append([]string{options.Server}, options.Replicas...)
	r := &runner{options: &options, pool: p}
	for attempt, next := 0, rand.IntN(len(servers)); ctx.Err() == nil; attempt, next = attempt+1, next+1 { // checkers spread
		r.server = servers[next%len(servers)]
		heard, err := r.connect(ctx)
		if ctx.Err() != nil {
			break
		}
		if heard {
			attempt = 0
		}
		r.lost = true
		if options.Explain != nil && !heard {
			err = options.Explain(ctx, r.server, err)
		}
		wait := backoff(attempt/len(servers), rand.Int64N) // longer after a round
		options.Log.Warn().Str("event", "coordinator_lost").Err(err).Str("server", r.server).Dur("retry_in", wait).
			Msg("no stream to the coordinator; checking goes on")
		pause(ctx, wait)
	}
	return nil
}

// backoff returns the delay after a failed attempt, with jitter.
func backoff(attempt int, random Random) time.Duration {
	limit := min(maxBackoff, minBackoff*time.Duration(math.Pow(2, float64(min(attempt+1, 10)))))
	return minBackoff + time.Duration(random(int64(limit-minBackoff)+1))
}

func pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// connect runs one stream until it ends. heard reports whether the coordinator sent
// anything.
func (r *runner) connect(ctx context.Context) (heard bool, err error) {
	dial := r.options.DialServer
	if dial == nil {
		dial = dialServer
	}
	transport := insecure.NewCredentials()
	if r.options.TLS != nil {
		transport = credentials.NewTLS(r.options.TLS)
	}
	// Use one connection for each attempt. So the back-off is ours, and each failure
	// has its reason.
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithContextDialer(dial),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: maxBackoff}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithDisableServiceConfig(),
	}
	if r.options.Credentials != nil {
		options = append(options, grpc.WithPerRPCCredentials(r.options.Credentials))
	}
	conn, err := grpc.NewClient("passthrough:///"+r.server, options...)
	if err != nil {
		return false, fmt.Errorf("connect to %s: %w", r.server, err)
	}
	defer conn.Close() //nolint:errcheck // nothing to do about it
	defer r.work.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := healthv3.NewHealthDiscoveryServiceClient(conn).StreamHealthCheck(ctx)
	if err != nil {
		return false, fmt.Errorf("open a stream: %w", err)
	}
	return r.follow(ctx, stream)
}
