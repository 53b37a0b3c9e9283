package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"hdsd/config"
	"hdsd/coordinator"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/log"
	"hdsd/store"
)

// freezerVariable has the child freeze and unfreeze a coordinator.
const freezerVariable = "HDSD_CRASH_FREEZER"

const frozenSite = `
grpc: {address: "127.0.0.1:0"}
http: {address: "127.0.0.1:0"}
sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]
default_health_checks:
- cluster_name_glob: "*"
  health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]
`

// frozenAt is what is so after the n-th change: frozen to what the sources
// say, to what stood, or not at all.
func frozenAt(n int) (frozen, holds bool) { return n%3 != 0, n%3 == 2 }

// freezer runs a coordinator and changes its freeze without end; it prints the
// number of each change that was acknowledged.
func freezer(dir string, first int) error {
	return operate(dir, first, func(control hdsdv1.ControlClient, n int) (err error) {
		frozen, holds := frozenAt(n)
		request := &hdsdv1.FreezeRequest{Reason: strconv.Itoa(n), Author: "test"}
		if holds {
			request.Publish = hdsdv1.FreezeState_HELD
		}
		if frozen {
			_, err = control.Freeze(context.Background(), request, grpc.WaitForReady(true))
		} else {
			_, err = control.Unfreeze(context.Background(), &hdsdv1.UnfreezeRequest{Author: "test"}, grpc.WaitForReady(true))
		}
		return err
	})
}

// operate runs a coordinator and makes one change after the other, until the
// kill.
func operate(dir string, first int, change func(control hdsdv1.ControlClient, n int) error) error {
	c, problems := config.Load(filepath.Join(dir, "hdsd.yaml"))
	if len(problems) > 0 {
		return fmt.Errorf("%v", problems)
	}
	built, err := coordinator.New(context.Background(), c, coordinator.Options{Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	go func() { _ = built.Run(context.Background()) }()
	connection, err := grpc.NewClient(built.GRPCAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	control, out := hdsdv1.NewControlClient(connection), json.NewEncoder(os.Stdout)
	for n := first; ; n++ {
		if err := change(control, n); err != nil {
			return err
		}
		if err := out.Encode(n); err != nil {
			return err
		}
	}
}

// operatedSite is a folder with the configuration of such a coordinator.
func operatedSite(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	clusters := "resources:\n- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n  cluster_name: web\n" +
		"  endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 9}}}}]}]\n"
	for name, text := range map[string]string{"hdsd.yaml": frozenSite, "clusters.yaml": clusters} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestKill9WhileFreezing kills a coordinator that is frozen and unfrozen all
// the time: what was acknowledged is so after the restart, but for the one
// change that was under way.
func TestKill9WhileFreezing(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := operatedSite(t)
	last := 0
	for round := range 8 {
		last = killCounting(t, freezerVariable, dir, last+1, 1+random.IntN(8), time.Duration(random.IntN(25_000))*time.Microsecond)
		s, err := store.Open(t.Context(), filepath.Join(dir, "data"), store.Options{OnError: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		stored, err := s.State()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		found := stored.Freeze
		if !is(found, last) {
			if last++; !is(found, last) {
				t.Fatalf("round %d, seed %d: change %d was acknowledged, but %+v is stored", round, seed, last-1, found)
			}
		}
	}
}

// is tells whether a freeze is what the n-th change led to.
func is(f *log.Freeze, n int) bool {
	frozen, holds := frozenAt(n)
	if f == nil || !frozen {
		return f == nil && !frozen
	}
	return f.Reason == strconv.Itoa(n) && holds == (f.Held != nil) && (!holds || len(f.Held) == 1)
}
