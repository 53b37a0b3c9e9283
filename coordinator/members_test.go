package coordinator

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	configv1 "hdsd/gen/hdsd/config/v1"
	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/log/etcd"
	"hdsd/store"
)

func TestLagOfAReplica(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name      string
		position  uint64
		received  uint64
		published time.Time
		connected bool
		want      time.Duration
	}{
		{"it has all", 7, 7, noon.Add(-time.Hour), true, 0},
		{"an entry waits", 7, 8, noon.Add(-time.Second), true, time.Second},
		{"it has published nothing yet", 7, 8, time.Time{}, true, 0},
		{"etcd is away", 7, 7, noon.Add(-time.Hour), false, time.Minute},
	} {
		s := etcd.Status{Connected: test.connected, Since: noon.Add(-time.Minute)}
		if got := lagOf(&replicaState{position: test.position, time: test.published}, test.received, &s, noon); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestCopiesAreBounded covers replicas that ask for copies of the database and do not read them.
func TestCopiesAreBounded(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.SetFleet(t.Context(), "fleet", 1); err != nil {
		t.Fatal(err)
	}
	service := newPeerService(&replicas{store: s, config: &configv1.Config{NodeId: "r1"}})
	for range maxCopies {
		service.copies <- struct{}{}
	}
	if err := service.Copy(&replicav1.CopyRequest{Fleet: "fleet"}, nil); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one copy more: %v", err)
	}
	if err := service.Copy(&replicav1.CopyRequest{Fleet: "another"}, nil); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a copy of another fleet: %v", err)
	}
}

// untaken is a copy whose receiver takes nothing.
type untaken struct {
	grpc.ServerStreamingServer[replicav1.CopyResponse]
	ctx context.Context
}

func (u untaken) Send(*replicav1.CopyResponse) error {
	<-u.ctx.Done()
	return u.ctx.Err()
}

// unsent is a copy whose sender sends nothing.
type unsent struct {
	grpc.ServerStreamingClient[replicav1.CopyResponse]
	ctx context.Context
}

func (u unsent) Context() context.Context { return u.ctx }

func (u unsent) Recv() (*replicav1.CopyResponse, error) {
	<-u.ctx.Done()
	return nil, u.ctx.Err()
}

// TestCopiesDoNotStall covers a replica that takes no part of its copy, and one that sends none.
func TestCopiesDoNotStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if err := file.Truncate(copyPart); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		if _, err := sendFile(file, untaken{ctx: ctx}); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("the sender ends with %v", err)
		}
		reader := &copyReader{stream: unsent{ctx: ctx}, cancel: cancel}
		if _, err := io.ReadAll(reader); !errors.Is(err, errStalled) {
			t.Errorf("the receiver ends with %v", err)
		}
	})
}
