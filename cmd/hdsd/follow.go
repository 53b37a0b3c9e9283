package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// Between two streams there is a pause, which doubles as long as nothing comes.
const (
	shortestPause = 500 * time.Millisecond
	longestPause  = 8 * time.Second
)

// errEnough is that everything was shown that is to be.
var errEnough = errors.New("enough was shown")

// follower shows what a watch brings, over restarts of the coordinator.
type follower struct {
	client  *client
	query   hdsdv1.QueryClient
	request *hdsdv1.WatchRequest // its token is of what was shown last
	printer printer
	tell    io.Writer // of what is no row

	shown  int
	synced bool // the present health was shown
	served bool // something has come of the present stream
	lost   bool // the coordinator is away, and it was said
}

// run goes on until there is enough, or the context ends. Nothing is repeated
// unless the coordinator answered once: what is wrong then is the question.
func (f *follower) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := f.follow(ctx)
	pause := shortestPause
	for once := f.served; once && ctx.Err() == nil; err = f.follow(ctx, grpc.WaitForReady(true)) {
		if f.served {
			pause = shortestPause
		}
		if again := f.recover(err); !again {
			break
		}
		if !rest(ctx, pause) {
			break
		}
		pause = min(2*pause, longestPause)
	}
	if ctx.Err() != nil || errors.Is(err, errEnough) {
		return f.printer.close() // as it is meant to end
	}
	if f.shown == 0 {
		return err // not even a header
	}
	return cmp.Or(f.printer.close(), err)
}

// rest waits for about so long; false where the context ends first. Those who
// lost the same coordinator are not to come back all at once.
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

// recover tells whether a stream that ended with err is to be opened again,
// and says what becomes of what happens meanwhile.
func (f *follower) recover(err error) bool {
	switch code := status.Code(err); {
	case errors.Is(err, errEnough):
		return false
	case code == codes.Unavailable:
		if !f.lost {
			f.say("%s stopped or was restarted: waiting to go on, interrupt to end", f.client.server)
		}
		f.lost = true
	case f.request.GetResumeToken() == "":
		return false
	case code == codes.OutOfRange || code == codes.InvalidArgument:
		f.say("there is a gap here: %s no longer knows what changed after the last line; the present health follows", f.client.server)
		f.request.ResumeToken, f.synced = "", false
	default:
		return false
	}
	f.served = false
	return true
}

func (f *follower) say(format string, args ...any) {
	fmt.Fprintf(f.tell, "hdsd: "+format+"\n", args...)
}

// follow shows what one stream brings until it ends. The present health is
// laid out together; changes are shown at once.
func (f *follower) follow(ctx context.Context, options ...grpc.CallOption) error {
	stream, err := f.query.Watch(ctx, f.request, options...)
	if err != nil {
		return err
	}
	if len(options) > 0 {
		if header, err := stream.Header(); err == nil && header != nil { // else Recv says why
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
	if message, cells := watchCells(event); message != nil {
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
		f.client.tellAbsence(ctx, f.query, f.tell)
	}
	if f.client.limit > 0 && f.shown >= f.client.limit {
		return errEnough
	}
	if !f.synced {
		return nil
	}
	return f.printer.flush()
}
