package coordinator_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/store"
)

// fat gives a folder whose history is larger than what a connection holds
// unread.
func fat(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s, err := store.Open(t.Context(), filepath.Join(dir, "data"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(&log.Entry{Plan: map[string][]health.Hash{"checker-1": make([]health.Hash, 1<<19)}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// take reads a copy to its end.
func take(parts grpc.ServerStreamingClient[hdsdv1.BackupResponse]) (taken []byte, size int64, err error) {
	for {
		part, err := parts.Recv()
		if err != nil {
			return taken, size, err
		}
		taken, size = append(taken, part.GetData()...), part.GetSize()
	}
}

func TestOneBackupAtATime(t *testing.T) {
	t.Parallel()
	s := newSite(t, fat(t), quick, static("web", "127.0.0.1:1"))
	s.ready()
	control := hdsdv1.NewControlClient(s.dial())
	ctx, giveUp := context.WithCancel(t.Context())
	slow, err := control.Backup(ctx, &hdsdv1.BackupRequest{})
	if err == nil {
		_, err = slow.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	try := func() (int64, int, error) {
		other, err := control.Backup(t.Context(), &hdsdv1.BackupRequest{})
		if err != nil {
			t.Fatal(err)
		}
		taken, size, err := take(other)
		return size, len(taken), err
	}
	if _, _, err := try(); status.Code(err) != codes.ResourceExhausted {
		t.Error("beside another:", err)
	}
	giveUp()
	var size int64
	var taken int
	s.eventually("the place of who gave up", func() bool {
		size, taken, err = try()
		return status.Code(err) != codes.ResourceExhausted
	})
	if !errors.Is(err, io.EOF) || size != int64(taken) || size < 4<<20 {
		t.Errorf("%d of %d bytes, %v", taken, size, err)
	}
}

func TestBackupEndsWhenHdsdStops(t *testing.T) {
	t.Parallel()
	s := newSite(t, fat(t), quick, static("web", "127.0.0.1:1"))
	s.ready()
	parts, err := hdsdv1.NewControlClient(s.dial()).Backup(t.Context(), &hdsdv1.BackupRequest{})
	var first *hdsdv1.BackupResponse
	if err == nil {
		first, err = parts.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	s.eventually("its end to begin", func() bool { code, _ := s.get("/healthz"); return code != http.StatusOK })
	taken, _, err := take(parts)
	if whole := int64(len(first.GetData()) + len(taken)); status.Code(err) != codes.Unavailable || whole >= first.GetSize() {
		t.Errorf("after %d of %d bytes: %v", whole, first.GetSize(), err)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// TestBackupIsConsistent covers a slow client: transitions during its backup are not in the copy, and are in
// the next one.
func TestBackupIsConsistent(t *testing.T) {
	t.Parallel()
	s := newSite(t, fat(t), quick, static("web", "127.0.0.1:1"))
	s.ready()
	control := hdsdv1.NewControlClient(s.dial())
	slow, err := control.Backup(t.Context(), &hdsdv1.BackupRequest{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := slow.Recv()
	if err != nil {
		t.Fatal(err)
	}
	const mark = "while it was copied"
	if _, err := control.Freeze(t.Context(), &hdsdv1.FreezeRequest{Reason: mark}); err != nil {
		t.Fatal(err)
	}
	rest, _, err := take(slow)
	if !errors.Is(err, io.EOF) || bytes.Contains(append(first.GetData(), rest...), []byte(mark)) {
		t.Errorf("has what came later: %v", err)
	}
	s.eventually("a copy with it", func() bool {
		next, err := control.Backup(t.Context(), &hdsdv1.BackupRequest{})
		if err != nil {
			t.Fatal(err)
		}
		whole, _, _ := take(next)
		return bytes.Contains(whole, []byte(mark))
	})
}
