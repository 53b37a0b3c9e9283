package coordinator

import (
	"sync"

	"google.golang.org/grpc"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/peer"
	"hdsd/peer/limit"
	"hdsd/peer/limit/inflight"
)

// streamBounds bound the gRPC streams.
type streamBounds struct {
	all    *limit.Pool
	silent *limit.Pool // on which nothing came yet
}

// Of silentOf streams, silentShare may be such on which nothing came yet: by default
// 7,000 of 25,000. That is more than a fleet of 6,000 that connects at once.
const (
	silentShare = 7
	silentOf    = 25
)

func (b *bounds) streamBounds(l *configv1.Limits) *streamBounds {
	total := int64(l.GetMaxStreams())
	return &streamBounds{
		all: b.pool(limit.Limit{
			Unit: "streams", Field: "limits.max_streams", Total: total,
			PerCallerField: "limits.max_streams_per_caller", PerCaller: int64(l.GetMaxStreamsPerCaller()),
		}),
		silent: b.pool(limit.Limit{
			Unit: "streams on which nothing was sent yet", Field: "limits.max_streams", Total: max(1, total*silentShare/silentOf),
		}),
	}
}

// intercept counts a stream. If others need its place, its connection ends.
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
	return handle(server, &received{s, func(err error) error { first(); return err }})
}
