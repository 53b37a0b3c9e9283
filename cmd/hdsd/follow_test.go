package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/reason"
	"hdsd/test/envoy"
)

// life is one run of a coordinator, of which a watcher sees just this. It ends
// with an error, or stays until it is killed. Who is back before the kill is not
// answered.
type life struct {
	hdsdv1.UnimplementedQueryServer
	asked   chan *hdsdv1.WatchRequest
	watches atomic.Int32
	shows   []*hdsdv1.WatchResponse
	ends    error
}

func (l *life) Watch(r *hdsdv1.WatchRequest, stream grpc.ServerStreamingServer[hdsdv1.WatchResponse]) error {
	l.asked <- r
	if l.watches.Add(1) > 1 {
		<-stream.Context().Done()
		return nil
	}
	if l.ends == nil || l.shows != nil {
		if err := stream.SendHeader(nil); err != nil {
			return err
		}
	}
	for _, event := range l.shows {
		if err := stream.Send(event); err != nil {
			return err
		}
	}
	if l.ends == nil {
		<-stream.Context().Done()
	}
	return l.ends
}

// live serves a life at an address, until kill.
func live(t *testing.T, address string, l *life) (kill func()) {
	t.Helper()
	l.asked = make(chan *hdsdv1.WatchRequest, 100)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server, done := grpc.NewServer(), make(chan struct{})
	hdsdv1.RegisterQueryServer(server, l)
	go func() { defer close(done); _ = server.Serve(listener) }()
	kill = func() { server.Stop(); <-done }
	t.Cleanup(kill)
	return kill
}

func changed(token string) *hdsdv1.WatchResponse {
	return &hdsdv1.WatchResponse{Token: token, Event: &hdsdv1.WatchResponse_Transition{Transition: &hdsdv1.Transition{
		Time: timestamppb.New(noon), Cluster: "web", Address: "10.0.0.1:80", Reason: "behind " + token,
	}}}
}

func allShown(token string) *hdsdv1.WatchResponse {
	return &hdsdv1.WatchResponse{Token: token, Event: &hdsdv1.WatchResponse_Synced{Synced: &hdsdv1.Synced{}}}
}

// watching is a watch command that is running.
type watching struct {
	out, errors *bufio.Scanner
	interrupt   func()
	ended       chan int
}

func startWatch(t *testing.T, address string) *watching {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	out, toOut := io.Pipe()
	errors, toErrors := io.Pipe()
	w := &watching{out: bufio.NewScanner(out), errors: bufio.NewScanner(errors), interrupt: interrupt, ended: make(chan int, 1)}
	go func() {
		w.ended <- run(ctx, []string{"watch", "-o", "json", "--server", address}, toOut, toErrors)
		toOut.Close()
		toErrors.Close()
	}()
	t.Cleanup(func() {
		interrupt()
		_, _ = io.Copy(io.Discard, errors)
		_, _ = io.Copy(io.Discard, out)
	})
	return w
}

func says(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	if !lines.Scan() || !strings.Contains(lines.Text(), want) {
		t.Fatalf("says %q, want %q", lines.Text(), want)
	}
}

func (w *watching) ends(t *testing.T, want int) {
	t.Helper()
	select {
	case got := <-w.ended:
		if got != want {
			t.Errorf("exit status %d, want %d", got, want)
		}
	case <-time.After(time.Minute):
		t.Error("goes on")
	}
}

// TestWatchOutlivesTheCoordinator: it goes on behind what it showed last,
// whether the coordinator was killed or said that it stops.
func TestWatchOutlivesTheCoordinator(t *testing.T) {
	first := &life{shows: []*hdsdv1.WatchResponse{allShown("1"), changed("2")}}
	address := envoy.FreeAddress(t)
	kill := live(t, address, first)
	w := startWatch(t, address)
	says(t, w.out, "behind 2")
	kill()
	says(t, w.errors, "hdsd: "+address+" stopped or was restarted: waiting to go on")

	second := &life{shows: []*hdsdv1.WatchResponse{changed("3")}, ends: status.Error(codes.Unavailable, "hdsd is stopping")}
	kill = live(t, address, second)
	says(t, w.errors, "is there again")
	says(t, w.out, "behind 3")
	says(t, w.errors, "stopped or was restarted")
	kill()
	if got := (<-second.asked).GetResumeToken(); got != "2" {
		t.Errorf("went on behind %q", got)
	}

	third := &life{} // nothing happens in it
	kill = live(t, address, third)
	says(t, w.errors, "is there again")
	kill()
	says(t, w.errors, "stopped or was restarted")
	if got := (<-third.asked).GetResumeToken(); got != "3" {
		t.Errorf("went on behind %q", got)
	}
	w.interrupt()
	w.ends(t, exitDone)
}

// TestWatchTellsOfAGap where the coordinator cannot go on behind a token.
func TestWatchTellsOfAGap(t *testing.T) {
	first := &life{shows: []*hdsdv1.WatchResponse{allShown("1")}, ends: status.Error(codes.Unavailable, "hdsd is stopping")}
	address := envoy.FreeAddress(t)
	kill := live(t, address, first)
	w := startWatch(t, address)
	says(t, w.errors, "stopped or was restarted")
	kill()
	second := &life{ends: reason.New(codes.OutOfRange, reason.HistoryForgotten, "too old")}
	kill = live(t, address, second)
	says(t, w.errors, "there is a gap here")
	kill()
	third := &life{shows: []*hdsdv1.WatchResponse{allShown("8"), changed("9")}}
	live(t, address, third)
	says(t, w.errors, "is there again")
	says(t, w.out, "behind 9")
	if got := (<-third.asked).GetResumeToken(); got != "" {
		t.Errorf("went on behind %q", got)
	}
	w.interrupt()
	w.ends(t, exitDone)
}

// TestWatchEndsOnPermanentErrors: an error other than a restart is a failure.
func TestWatchEndsOnPermanentErrors(t *testing.T) {
	address := envoy.FreeAddress(t)
	live(t, address, &life{shows: []*hdsdv1.WatchResponse{allShown("1")}, ends: status.Error(codes.Internal, "the disk is gone")})
	w := startWatch(t, address)
	says(t, w.errors, "hdsd: the disk is gone")
	w.ends(t, exitFailed)
}
