package api

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/internal/gate"
	"hdsd/internal/reason"
	"hdsd/peer"
	"hdsd/peer/limit"
)

// WatchQuery narrows a watch; zero fields do not.
type WatchQuery struct {
	Cluster string
	Address string
	Filter  health.Filter // matches the present health, or the health before or after a change
	Token   string        // to resume after; empty: start with the current health

	// ByCluster adds changes up by cluster. The watch starts with Synced, without the current health.
	ByCluster bool
}

// Watcher is one watch. One goroutine uses it.
type Watcher interface {
	// Next waits for events, of up to changes changes. They must not be modified. If it returns
	// ctx's error, nothing is lost: call it again.
	Next(ctx context.Context, changes int) (*Batch, error)

	// Close ends watching.
	Close()
}

// deafAfter bounds the time that a watcher reads nothing.
const deafAfter = 5 * time.Second

// errDeaf ends a watch whose client reads nothing.
var errDeaf = status.Errorf(codes.DeadlineExceeded, "the client has not read for %v", deafAfter)

// watching is a counted watch.
type watching struct {
	Watcher
	context.Context // ends with the caller's, or when the watch has to make room

	service *Service
	caller  string
	cancel  context.CancelCauseFunc
	lease   *limit.Lease
}

// watch begins a watch. If it has to make room, ended is called after its context has ended.
func (s *Service) watch(ctx context.Context, q WatchQuery, ended func()) (*watching, error) {
	w := &watching{service: s, caller: peer.FromContext(ctx).Key()}
	w.Context, w.cancel = context.WithCancelCause(ctx)
	var err error
	if s.limits.Watches != nil {
		if w.lease, err = s.limits.Watches.Take(w.caller, 1, func(err error) { w.cancel(err); ended() }); err != nil {
			w.cancel(nil)
			return nil, err
		}
	}
	if w.Watcher, err = s.backend.Watch(ctx, q); err != nil {
		w.lease.Release()
		w.cancel(nil)
		return nil, err
	}
	return w, nil
}

// end ends a watch because of err.
func (w *watching) end(err error) {
	w.Close()
	w.cancel(nil)
	w.lease.Release()
	if (errors.Is(err, errDeaf) || errors.Is(err, os.ErrDeadlineExceeded)) && w.service.limits.Deaf != nil {
		w.service.limits.Deaf(w.caller)
	}
}

// reason returns the cause of a watch's end: its limit, if it had to make room.
func (w *watching) reason(err error) error {
	if limitErr := (*limit.Error)(nil); errors.As(context.Cause(w), &limitErr) {
		return limitErr
	}
	return err
}

// watchQuery reads a request. The error is a gRPC status.
func watchQuery(r *hdsdv1.WatchRequest) (WatchQuery, error) {
	filter, err := filterOf(r)
	if err != nil {
		return WatchQuery{}, err
	}
	dimension := strings.ToLower(r.GetBy())
	if dimension != "" && dimension != byCluster {
		return WatchQuery{}, status.Errorf(codes.InvalidArgument, "by: %q is not %s", r.GetBy(), byCluster)
	}
	return WatchQuery{Cluster: r.GetCluster(), Address: r.GetAddress(), Filter: filter, Token: r.GetResumeToken(), ByCluster: dimension != ""}, nil
}

// Watch sends the current health of endpoints, then each change.
func (s *Service) Watch(r *hdsdv1.WatchRequest, stream grpc.ServerStreamingServer[hdsdv1.WatchResponse]) (err error) {
	if !s.calls.Enter() {
		return gate.ErrClosing
	}
	defer s.calls.Leave()
	query, err := watchQuery(r)
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	w, err := s.watch(stream.Context(), query, func() {})
	if err != nil {
		return watchError(err, "resume_token")
	}
	if err := stream.SendHeader(nil); err != nil { // tells the client at once that the watch has started
		w.end(err)
		return err
	}
	// A client that does not read blocks the goroutine that sends. When this one returns, grpc
	// ends the stream, and thereby that goroutine.
	s.calls.Go(func() {
		err := w.send(stream, func() { ended <- errDeaf })
		ended <- err
		w.end(err)
	})
	select {
	case err = <-ended:
	case <-w.Done():
		select {
		case err = <-ended:
		default:
			err = w.reason(w.Err())
		}
	}
	return grpcError(err)
}

// send sends events over gRPC until the watch ends. It calls stuck if the client has not read
// for too long.
func (w *watching) send(stream grpc.ServerStream, stuck func()) error {
	deaf := time.AfterFunc(deafAfter, stuck)
	deaf.Stop()
	for {
		batch, err := w.Next(w, fewChanges)
		if err != nil {
			return w.reason(err)
		}
		end, err := w.turn()
		if err != nil {
			return err
		}
		deaf.Reset(deafAfter)
		err = sendAll(stream, batch)
		late := !deaf.Stop()
		end()
		if late {
			return errDeaf
		}
		if err != nil {
			return err
		}
	}
}

func sendAll(stream grpc.ServerStream, batch *Batch) error {
	for _, e := range batch.Events {
		message, err := e.Message()
		if err == nil {
			err = stream.SendMsg(&message)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// watchError is grpcError, but for a bad token it names the parameter.
func watchError(err error, parameter string) error {
	if errors.Is(err, ErrBadToken) {
		return reason.New(codes.InvalidArgument, reason.TokenInvalid, parameter+" is not a token that this history gave out: watch again without it")
	}
	return grpcError(err)
}
