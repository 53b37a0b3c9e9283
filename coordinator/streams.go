package coordinator

import (
	"sync"

	"google.golang.org/grpc"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/caller"
	"hdsd/internal/inflight"
	"hdsd/internal/share"
)

// streamBounds bound the gRPC streams.
type streamBounds struct {
	all    *share.Pool
	silent *share.Pool // on which nothing came yet
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
		all: b.pool(share.Limit{
			What: "streams", Field: "limits.max_streams", Total: total,
			EachField: "limits.max_streams_per_caller", Each: int64(l.GetMaxStreamsPerCaller()),
		}),
		silent: b.pool(share.Limit{
			What: "streams on which nothing was sent yet", Field: "limits.max_streams", Total: max(1, total*silentShare/silentOf),
		}),
	}
}

// intercept counts a stream. If others need its place, its connection ends.
func (b *streamBounds) intercept(server any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	key, end := caller.FromContext(s.Context()).Key(), func(error) { inflight.End(s.Context()) }
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
	return handle(server, &heard{s, sync.OnceFunc(silent.Release)})
}

// heard is a stream whose first message is awaited.
type heard struct {
	grpc.ServerStream
	first func()
}

// RecvMsg implements grpc.ServerStream.
func (h *heard) RecvMsg(m any) error {
	err := h.ServerStream.RecvMsg(m)
	h.first()
	return err
}
