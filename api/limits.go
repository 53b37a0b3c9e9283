package api

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/caller"
	"hdsd/internal/queue"
	"hdsd/internal/reason"
	"hdsd/internal/share"
)

// smallQuery is the number of rows up to which a query never waits for larger ones: a
// page of the default size.
const smallQuery = DefaultPageSize

// Limits bound what callers may ask for. The zero value bounds nothing.
type Limits struct {
	// Queries are those that are worked at or wait, and over REST those that are being sent.
	Queries *share.Pool

	// Rows are those of the answers that are being sent.
	Rows *share.Pool

	// Watches are the open ones.
	Watches *share.Pool

	// Deaf, if not nil, is told whose watch was ended because the client does not read.
	Deaf func(caller string)

	// Patience is how long a query may wait for its turn. Default: 30 s.
	Patience time.Duration

	turns *queue.Queue // for processor time
}

// Limit bounds what callers may ask for. Call it before the service is registered.
func (s *Service) Limit(l Limits) {
	if l.Patience == 0 {
		l.Patience = 30 * time.Second
	}
	// Half of the processors, so that the core and the streams always have the others.
	l.turns = queue.New(queue.Options{Working: max(1, runtime.GOMAXPROCS(0)/2), Small: smallQuery})
	s.limits = l
}

// QueriesWaiting counts the queries that wait for their turn.
func (s *Service) QueriesWaiting() int {
	if s.limits.turns == nil {
		return 0
	}
	return s.limits.turns.Waiting()
}

// errBusy ends a wait for a turn.
func (l *Limits) errBusy() error {
	return withRetry(reason.With(status.Newf(codes.ResourceExhausted,
		"hdsd answers a few queries at a time, and this one has waited %v for its turn: ask for smaller pages, or try again later", l.Patience), reason.LimitReached))
}

// delivery is one query from its beginning until its answer is sent.
type delivery struct {
	caller  string
	turn    *queue.Turn
	queries *share.Lease
	stop    func() // ends the sending; nil if nothing shows when the answer is sent
	text    []byte // of the answer, where it takes no message

	mu   sync.Mutex
	rows *share.Lease
	over bool
}

type inContext struct{}

// within puts a delivery into the context of a query. Whoever does so finishes it when
// the answer was sent.
func within(ctx context.Context, d *delivery) context.Context {
	return context.WithValue(ctx, inContext{}, d)
}

// deliveryOf returns the delivery in the context of a query, or nil.
func deliveryOf(ctx context.Context) *delivery {
	d, _ := ctx.Value(inContext{}).(*delivery)
	return d
}

// begin waits until a query may be worked at. The context that it returns is the one to
// work with. Cancel it when the work is done.
func (l *Limits) begin(ctx context.Context, d *delivery, rows int64) (context.Context, context.CancelCauseFunc, error) {
	working, cancel := context.WithCancelCause(ctx)
	if l.turns == nil {
		return working, cancel, nil
	}
	d.caller = caller.FromContext(ctx).Key()
	var err error
	if l.Queries != nil {
		d.queries, err = l.Queries.Take(d.caller, 1, func(err error) { cancel(err); d.end() })
	}
	if err == nil {
		patient, enough := context.WithTimeoutCause(working, l.Patience, l.errBusy())
		d.turn, err = l.turns.Wait(patient, d.caller, rows)
		enough()
	}
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	return working, cancel, nil
}

// send counts the rows of an answer until it is sent.
func (l *Limits) send(d *delivery, rows int) error {
	if l.Rows == nil {
		return nil
	}
	end := func(error) { d.end() }
	if d.stop == nil {
		end = nil
	}
	d.mu.Lock() // so that end waits until the lease is known
	defer d.mu.Unlock()
	lease, err := l.Rows.Take(d.caller, int64(rows), end)
	d.rows = lease
	return err
}

// worked ends the turn of a query. Its answer is yet to be sent.
func (d *delivery) worked() {
	if d.turn != nil {
		d.turn.End()
	}
}

// end stops the sending of an answer that is not sent yet, because it has to make room.
func (d *delivery) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.over && d.stop != nil {
		d.stop()
	}
}

// finish gives back what a query has.
func (d *delivery) finish() {
	d.worked()
	d.mu.Lock()
	d.over = true
	d.mu.Unlock()
	d.queries.Release()
	d.rows.Release()
}

// longestSend is how long the client of a gRPC call may take to read an answer.
const longestSend = 2 * time.Minute

// Delivered makes answers over gRPC count until they are sent, and not only until their handlers
// return. after has a function called then. end ends the connection of a call: nothing else stops
// an answer that is with grpc. It does so for an answer that has to make room, or is not read in
// time.
func Delivered(after func(context.Context, func()), end func(context.Context)) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, question any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if !strings.HasPrefix(info.FullMethod, queryPrefix) {
			return handle(ctx, question)
		}
		var answered atomic.Bool
		d := &delivery{stop: func() {
			if answered.Load() {
				end(ctx)
			}
		}}
		answer, err := handle(within(ctx, d), question)
		if err != nil || d.rows == nil {
			d.finish()
			return answer, err
		}
		d.worked()
		d.queries.Release()
		answered.Store(true)
		late := time.AfterFunc(longestSend, func() { end(ctx) })
		after(ctx, func() {
			late.Stop()
			d.finish()
		})
		return answer, nil
	}
}

var queryPrefix = "/" + hdsdv1.Query_ServiceDesc.ServiceName + "/"

// answer works at a query in its turn.
func answer[Question, Answer any](ctx context.Context, s *Service, size int32, q Question,
	work func(context.Context, Question) (Answer, error), rows func(Answer) int,
) (none Answer, err error) {
	asked, err := pageSize(size)
	if err != nil {
		return none, err
	}
	d := deliveryOf(ctx)
	if d == nil {
		d = &delivery{}
		defer d.finish()
	}
	working, cancel, err := s.limits.begin(ctx, d, int64(asked))
	if err != nil {
		return none, grpcError(err)
	}
	defer cancel(nil)
	found, err := work(working, q)
	if own := (*share.Error)(nil); err != nil && errors.As(context.Cause(working), &own) {
		return none, grpcError(own) // it had to make room
	}
	if err != nil {
		return none, err
	}
	if err := s.limits.send(d, rows(found)); err != nil {
		return none, grpcError(err)
	}
	return found, nil
}
