package coordinator

import (
	"sync"

	"google.golang.org/grpc"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/peer"
	"hdsd/peer/limit"
	"hdsd/peer/limit/inflight"
)

// streamBounds limits the gRPC streams.
type streamBounds struct {
	all    *limit.Pool
	silent *limit.Pool // streams without a message so far
}

// The share silentNumerator/silentDenominator of the streams may be without a message: 7,000 of 25,000 by
// default. A fleet of 6,000 that connects at once fits in.
const (
	silentNumerator   = 7
	silentDenominator = 25
)

// streamBounds makes the pools of streams.
func (b *bounds) streamBounds(l *configv1.Limits) *streamBounds {
	total := int64(l.GetMaxStreams())
	return &streamBounds{
		all: b.pool(limit.Limit{
			Unit: "streams", Field: "limits.max_streams", Total: total,
			PerCallerField: "limits.max_streams_per_caller", PerCaller: int64(l.GetMaxStreamsPerCaller()),
		}),
		silent: b.pool(limit.Limit{
			Unit: "streams on which nothing was sent yet", Field: "limits.max_streams", Total: max(1, total*silentNumerator/silentDenominator),
		}),
	}
}

// intercept takes a place for a stream. If others need the place, the connection of the stream ends.
func (b *streamBounds) intercept(server any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	key, end := peer.FromContext(s.Context()).Key(), func(error) { inflight.End(s.Context()) }
	place, err := b.all.Take(key, 1, end)
	if err != nil {
		return err
	}
	defer place.Release()
	silent, err := b.silent.Take(key, 1, end)
	if err != nil {
		return err
	}
	defer silent.Release()
	first := sync.OnceFunc(silent.Release)
	return handle(server, &observedStream{s, func(err error) error { first(); return err }})
}
