package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/reason"
)

// Bounds of the pause between two streams, which doubles until something arrives.
const (
	shortestPause = 500 * time.Millisecond
	longestPause  = 8 * time.Second
)

// errEnough reports that the limit of rows is reached.
var errEnough = errors.New("enough was shown")

// follower shows the events of a watch, across restarts of the coordinator.
type follower struct {
	client  *client
	query   hdsdv1.QueryClient
	request *hdsdv1.WatchRequest // its token is that of the last event shown
	printer printer
	tell    io.Writer // for messages

	shown  int
	synced bool // the current health was shown
	served bool // the current stream has sent something
	lost   bool // the coordinator is away, and the user knows
}

// run continues until the limit is reached or the context ends. It retries only after
// the coordinator has answered once; an earlier error is the command's.
func (f *follower) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := f.follow(ctx)
	pause := shortestPause
	for retry := f.served; retry && ctx.Err() == nil; err = f.follow(ctx, grpc.WaitForReady(true)) {
		if f.served {
			pause = shortestPause
		}
		if retry := f.recover(err); !retry {
			break
		}
		if !rest(ctx, pause) {
			break
		}
		pause = min(2*pause, longestPause)
	}
	if ctx.Err() != nil || errors.Is(err, errEnough) {
		return f.printer.close() // the intended end
	}
	if f.shown == 0 {
		return err // not even a header
	}
	return cmp.Or(f.printer.close(), err)
}

// rest waits for about pause; false if the context ends first. Jitter keeps clients of
// one coordinator from returning all at once.
func rest(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause/2 + rand.N(pause)) //nolint:gosec // no secret
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// recover reports whether to open a stream again that ended with err, and tells the
// user about the gap.
func (f *follower) recover(err error) bool {
	switch cause := reason.Of(err); {
	case errors.Is(err, errEnough):
		return false
	case status.Code(err) == codes.Unavailable:
		if !f.lost {
			f.say("%s stopped or was restarted: waiting to go on, interrupt to end", f.client.server)
		}
		f.lost = true
	case f.request.GetResumeToken() == "":
		return false
	case cause == reason.HistoryForgotten || cause == reason.TokenInvalid:
		f.say("there is a gap here: %s no longer knows what changed after the last line; the present health follows", f.client.server)
		f.request.ResumeToken, f.synced = "", false
	default:
		return false
	}
	f.served = false
	return true
}

func (f *follower) say(format string, args ...any) {
	say(f.tell, "hdsd: "+format+"\n", args...)
}

// follow shows the events of one stream until it ends. It lays out the current health
// together, and shows changes at once.
func (f *follower) follow(ctx context.Context, options ...grpc.CallOption) error {
	stream, err := f.query.Watch(ctx, f.request, options...)
	if err != nil {
		return err
	}
	if len(options) > 0 {
		if header, err := stream.Header(); err == nil && header != nil { // else Recv returns the reason
			f.say("%s is there again", f.client.server)
			f.lost = false
		}
	}
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return errEnough
		}
		if err != nil && f.shown == 0 {
			return err
		}
		if err != nil {
			return cmp.Or(f.printer.flush(), err)
		}
		if err := f.event(ctx, event); err != nil {
			return err
		}
	}
}

func (f *follower) event(ctx context.Context, event *hdsdv1.WatchResponse) error {
	f.served = true
	if message, cells := f.client.filter.watchCells(event); message != nil {
		if err := f.printer.row(message, cells); err != nil {
			return err
		}
		f.shown++
	}
	if token := event.GetToken(); token != "" {
		f.request.ResumeToken = token
	}
	if event.GetSynced() != nil {
		f.synced = true
		f.client.warnAbsent(ctx, f.query, f.tell)
	}
	if f.client.limit > 0 && f.shown >= f.client.limit {
		return errEnough
	}
	if !f.synced {
		return nil
	}
	return f.printer.flush()
}
