package crash

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/store"
)

// overriderVariable has the child set and clear overrides of a coordinator.
const overriderVariable = "HDSD_CRASH_OVERRIDER"

// overrider sets an override for a cluster and another for its endpoint, which it
// clears, without end.
func overrider(dir string, first int) error {
	return operate(dir, first, func(control hdsdv1.ControlClient, n int) (err error) {
		request := &hdsdv1.SetOverrideRequest{Cluster: "web", Health: corev3.HealthStatus_DRAINING, Reason: strconv.Itoa(n)}
		switch n % 3 {
		case 0:
			_, err = control.ClearOverrides(context.Background(), &hdsdv1.ClearOverridesRequest{Cluster: "web", Address: "127.0.0.1:9"}, grpc.WaitForReady(true))
			return err
		case 2:
			request.Address, request.Health = "127.0.0.1:9", corev3.HealthStatus_HEALTHY
		}
		_, err = control.SetOverride(context.Background(), request, grpc.WaitForReady(true))
		return err
	})
}

// TestKill9WhileOverriding is TestKill9WhileFreezing for overrides. While the
// history ends with one, what the votes had come to is known.
func TestKill9WhileOverriding(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir, last := operatedSite(t), 0
	endpoint := health.Endpoint{Cluster: "web", Address: "127.0.0.1:9"}
	for round := range 8 {
		last = killCounting(t, overriderVariable, dir, last+1, 1+random.IntN(8), time.Duration(random.IntN(25_000))*time.Microsecond)
		s, err := store.Open(t.Context(), filepath.Join(dir, "data"), store.Options{OnError: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		stored, err := s.State()
		if err != nil {
			t.Fatal(err)
		}
		found := stored.Overrides
		if !are(found, last) {
			if last++; !are(found, last) {
				t.Fatalf("round %d, seed %d: change %d was acknowledged, but %+v are stored", round, seed, last-1, found)
			}
		}
		current := stored.Current[endpoint.Hash()]
		if _, known := stored.Voted[endpoint.Hash()]; !known && current.Status != health.Unknown {
			t.Errorf("round %d, seed %d: the history ends with %+v, and nothing is known of the votes", round, seed, current)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// are tells whether overrides are what the n-th change led to.
func are(found []log.Override, n int) bool {
	reasons := map[health.Endpoint]string{}
	for _, o := range found {
		reasons[o.Scope] = o.Reason
	}
	web := health.Endpoint{Cluster: "web"}
	switch n % 3 {
	case 0:
		return len(found) == 1 && reasons[web] == strconv.Itoa(n-2)
	case 1:
		return len(found) == 1 && reasons[web] == strconv.Itoa(n)
	}
	return len(found) == 2 && reasons[web] == strconv.Itoa(n-1) && reasons[health.Endpoint{Cluster: "web", Address: "127.0.0.1:9"}] == strconv.Itoa(n)
}
