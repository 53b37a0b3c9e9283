package hds

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"hdsd/internal/rest"
	"hdsd/internal/wire"
)

// Options are the settings of a Server. The zero value is ready to use.
type Options struct {
	// Interval is the time between two reports, as sent to checkers. Default: 1 s.
	Interval time.Duration

	// FirstMessageTimeout bounds the wait for a stream's first message. Default: 10 s.
	FirstMessageTimeout time.Duration

	// WriteTimeout bounds the wait of one specifier for a peer that does not read. Default: 10
	// s.
	WriteTimeout time.Duration

	// AssignTimeout bounds the wait of a checker's first fetch for an assignment. After it the
	// checker gets an empty specifier. Default: 1 s.
	AssignTimeout time.Duration

	// MaxMessageBytes bounds received messages. A larger one ends its stream with
	// RESOURCE_EXHAUSTED. Default: 64 MiB.
	MaxMessageBytes int

	// MaxIDsPerCaller bounds the node ids of a caller's checkers, now and in the last 10 s.
	// MaxJoinsPerMinute bounds the ids per minute that were not among the caller's in the last
	// minute. Defaults: 2,000 and 1,200.
	MaxIDsPerCaller, MaxJoinsPerMinute int

	// Waited returns how long messages of a call have waited for the server's memory, in total
	// and for the present one, zero without one. This time does not count as a checker's
	// silence. Default: no message waits.
	Waited func(call context.Context) (total, present time.Duration)

	// Check makes a call refuse messages by their sizes, before they are read, if check returns
	// an error. Default: they are read first.
	Check func(call context.Context, check func(bytes int) error)

	// Ended reports whether the server itself has ended the connection of a call. Default: it
	// has not.
	Ended func(call context.Context) bool

	// Planned reports whether the server itself ended the connection from an
	// address, so that the client makes another. The checker then counts as
	// connected for PlannedGrace. Default: no connection is ended.
	Planned func(address string) bool

	// MoveAfter is the age of a connection at which ServerOptions let grpc ask the
	// client to move, give or take a tenth. Streams stay. Default: none.
	MoveAfter time.Duration

	// PlannedGrace is how long to wait for such a checker. Default: 5 s.
	PlannedGrace time.Duration

	// Bodies bounds the bytes of REST requests. Default: nothing does.
	Bodies *rest.Budget

	// Log gets what operators should know. Default: nothing is logged.
	Log zerolog.Logger

	// Named returns the name of a cluster for a line of the log. Default: its name in specifiers.
	Named func(cluster string) zerolog.LogObjectMarshaler

	// Registerer gets the metrics, named hdsd_hds_…. Default: nothing does.
	Registerer prometheus.Registerer
}

func (o Options) withDefaults() Options {
	o.Interval = orDefault(o.Interval, time.Second)
	o.FirstMessageTimeout = orDefault(o.FirstMessageTimeout, 10*time.Second)
	o.WriteTimeout = orDefault(o.WriteTimeout, 10*time.Second)
	o.AssignTimeout = orDefault(o.AssignTimeout, time.Second)
	if o.Waited == nil {
		o.Waited = func(context.Context) (total, present time.Duration) { return 0, 0 }
	}
	if o.Check == nil {
		o.Check = func(context.Context, func(int) error) {}
	}
	if o.Ended == nil {
		o.Ended = func(context.Context) bool { return false }
	}
	if o.Planned == nil {
		o.Planned = func(string) bool { return false }
	}
	if o.Named == nil {
		o.Named = func(cluster string) zerolog.LogObjectMarshaler { return plainName(cluster) }
	}
	o.PlannedGrace = orDefault(o.PlannedGrace, 5*time.Second)
	o.MaxMessageBytes = orDefault(o.MaxMessageBytes, 64<<20)
	o.MaxIDsPerCaller = orDefault(o.MaxIDsPerCaller, 2000)
	o.MaxJoinsPerMinute = orDefault(o.MaxJoinsPerMinute, 1200)
	return o
}

// plainName is the name of a cluster in a specifier.
type plainName string

// MarshalZerologObject implements zerolog.LogObjectMarshaler.
func (n plainName) MarshalZerologObject(e *zerolog.Event) { e.Str("cluster", string(n)) }

func orDefault[T cmp.Ordered](value, otherwise T) T {
	var zero T
	if value <= zero {
		return otherwise
	}
	return value
}

// A peer that says nothing is asked for a sign of life after keepaliveTime, or twice
// that, and its connection ends when it gives none within keepaliveTimeout. That is
// long: a peer that is busy, such as an Envoy that takes in much, answers late. A checker
// that is gone is noticed earlier, by the reports that do not come.
//
// Peers may ping as often as every keepaliveMinTime: Envoy's own keepalive can be set to
// less than the five minutes that grpc would tolerate.
const (
	keepaliveTime    = 5 * time.Second
	keepaliveTimeout = 20 * time.Second
	keepaliveMinTime = 100 * time.Millisecond
)

// What a client may send before it has to wait for the handler to read. The windows do not
// change: grpc would ping each client whenever something comes, to find out how large they
// should be, which is a write and a read more for each report and each ACK. A message that is
// larger than the window of its stream gets room when its handler asks for it. That of the
// connection bounds no memory, since each stream has its own: it is the largest that grpc
// would find.
const (
	streamWindow     = 512 << 10
	connectionWindow = 16 << 20
)

// ServerOptions returns the options that the grpc.Server of a Server needs.
func ServerOptions(o Options) []grpc.ServerOption {
	o = o.withDefaults()
	return []grpc.ServerOption{
		wire.ServerOption(), wire.Buffers(),
		grpc.MaxRecvMsgSize(o.MaxMessageBytes),
		grpc.StaticStreamWindowSize(streamWindow), grpc.StaticConnWindowSize(connectionWindow),
		grpc.ConnectionTimeout(o.FirstMessageTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout, MaxConnectionAge: o.MoveAfter}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinTime, PermitWithoutStream: true}),
	}
}
