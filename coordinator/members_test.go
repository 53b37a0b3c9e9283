package coordinator

import (
	"testing"
	"time"

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
