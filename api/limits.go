package api

import (
	"cmp"
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
	"hdsd/internal/reason"
	"hdsd/peer"
	"hdsd/peer/limit"
)

// smallQuery is the number of rows up to which a query never waits for larger ones: a page of
// the default size.
const smallQuery = DefaultPageSize

// Limits bound requests. The zero value bounds nothing.
type Limits struct {
	// Queries bounds running and waiting queries, and over REST those being sent.
	Queries *limit.Pool

	// Rows bounds the rows of answers being sent.
	Rows *limit.Pool

	// Watches bounds open watches.
	Watches *limit.Pool

	// Deaf, if not nil, gets the caller of a watch that ended because its client does not read.
	Deaf func(caller string)

	// Patience bounds the wait of a query for its turn. Default: 30 s.
	Patience time.Duration

	turns *limit.Queue // for processor time
}

// Limit sets the limits. Call it before the service is registered.
func (s *Service) Limit(l Limits) {
	if l.Patience == 0 {
		l.Patience = 30 * time.Second
	}
	// Half of the processors, so that the core and the streams always have the others.
	l.turns = limit.NewWork(runtime.GOMAXPROCS(0)/2, smallQuery)
	s.limits = l
}

// QueriesWaiting counts the queries waiting for their turn.
func (s *Service) QueriesWaiting() int {
	if s.limits.turns == nil {
		return 0
	}
	return s.limits.turns.Waiting().Count
}

// errBusy ends a wait for a turn.
func (l *Limits) errBusy() error {
	return withRetry(reason.With(status.Newf(codes.ResourceExhausted,
		"hdsd answers a few queries at a time, and this one has waited %v for its turn: ask for smaller pages, or try again later", l.Patience), reason.LimitReached))
}

// delivery is one query until its answer is sent.
type delivery struct {
	caller   string
	waitTurn func(context.Context) (*limit.Turn, error) // waits for the query's turn; nil: it needs none
	turn     *limit.Turn
	queries  *limit.Lease
	stop     func() // ends the sending; nil if its end is unknown
	text     []byte // the answer, if it has no message

	mu       sync.Mutex
	rows     *limit.Lease
	finished bool
}

type inContext struct{}

// withDelivery puts a delivery into the context of a query. The caller finishes it when the
// answer is sent.
func withDelivery(ctx context.Context, d *delivery) context.Context {
	return context.WithValue(ctx, inContext{}, d)
}

// deliveryOf returns the delivery in the context of a query, or nil.
func deliveryOf(ctx context.Context) *delivery {
	d, _ := ctx.Value(inContext{}).(*delivery)
	return d
}

// begin waits for the turn of a query. Work with the returned context, and cancel it at the end.
func (l *Limits) begin(ctx context.Context, d *delivery, rows int64) (context.Context, context.CancelCauseFunc, error) {
	working, cancel := context.WithCancelCause(ctx)
	if l.turns == nil {
		return working, cancel, nil
	}
	d.caller = peer.FromContext(ctx).Key()
	var err error
	if l.Queries != nil {
		d.queries, err = l.Queries.Take(d.caller, 1, func(err error) { cancel(err); d.end() })
	}
	if err == nil {
		d.waitTurn = func(ctx context.Context) (*limit.Turn, error) {
			patient, enough := context.WithTimeoutCause(ctx, l.Patience, l.errBusy())
			defer enough()
			return l.turns.Work(patient, d.caller, rows)
		}
		d.turn, err = d.waitTurn(working)
	}
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	return withDelivery(working, d), cancel, nil
}

// Aside waits for the work of other goroutines, and returns the error of wait. The query of the
// context gives up its turn meanwhile, so that other queries proceed.
func Aside(ctx context.Context, wait func() error) error {
	d := deliveryOf(ctx)
	if d == nil || d.waitTurn == nil {
		return wait()
	}
	d.turn.Release()
	err := wait()
	turn, late := d.waitTurn(ctx)
	if late != nil {
		return cmp.Or(err, late)
	}
	d.turn = turn
	return err
}

// InTurn does work in a turn of a queue, which Aside gives up and takes again.
func InTurn(ctx context.Context, turns *limit.Queue, caller string, rows int64, work func(context.Context) error) (err error) {
	d := &delivery{caller: caller, waitTurn: func(ctx context.Context) (*limit.Turn, error) { return turns.Work(ctx, caller, rows) }}
	if d.turn, err = d.waitTurn(ctx); err != nil {
		return err
	}
	defer func() { d.turn.Release() }()
	return work(withDelivery(ctx, d))
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

// end stops the sending of an answer, to make room.
func (d *delivery) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.finished && d.stop != nil {
		d.stop()
	}
}

// finish releases the resources of a query.
func (d *delivery) finish() {
	d.turn.Release()
	d.mu.Lock()
	d.finished = true
	d.mu.Unlock()
	d.queries.Release()
	d.rows.Release()
}

// longestSend bounds the time that the client of a gRPC call takes to read an answer.
const longestSend = 2 * time.Minute

// Delivered makes answers over gRPC count until they are sent, not only until their handlers
// return. after registers a function to call then. end ends the connection of a call: nothing
// else stops an answer inside grpc. Delivered calls it for an answer that has to make room, or
// is not read in time.
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
		answer, err := handle(withDelivery(ctx, d), question)
		if err != nil || d.rows == nil {
			d.finish()
			return answer, err
		}
		d.turn.Release()
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

// answer runs a query in its turn.
func answer[Question, Answer any](ctx context.Context, s *Service, size int32, q Question,
	work func(context.Context, Question) (Answer, error), rows func(Answer) int,
) (zero Answer, err error) {
	requested, err := pageSize(size)
	if err != nil {
		return zero, err
	}
	d := deliveryOf(ctx)
	if d == nil {
		d = &delivery{}
		defer d.finish()
	}
	working, cancel, err := s.limits.begin(ctx, d, int64(requested))
	if err != nil {
		return zero, grpcError(err)
	}
	defer cancel(nil)
	found, err := work(working, q)
	if limitErr := (*limit.Error)(nil); err != nil && errors.As(context.Cause(working), &limitErr) {
		return zero, grpcError(limitErr) // it had to make room
	}
	if err != nil {
		return zero, err
	}
	if err := s.limits.send(d, rows(found)); err != nil {
		return zero, grpcError(err)
	}
	return found, nil
}
