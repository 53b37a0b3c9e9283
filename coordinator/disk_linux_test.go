package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// failingDisk has every write to the database of this site fail until heal is called: the
// descriptor that the store has becomes one that is open for reading only.
func (s *site) failingDisk() (heal func()) {
	s.t.Helper()
	path := filepath.Join(s.dir, "data", "hdsd.db")
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || to != path {
			continue
		}
		descriptor, err := strconv.Atoi(filepath.Base(link))
		if err != nil {
			s.t.Fatal(err)
		}
		return s.replaced(descriptor, path)
	}
	s.t.Fatalf("nobody has %s open", path)
	return nil
}

func (s *site) replaced(descriptor int, path string) (heal func()) {
	s.t.Helper()
	saved, err := unix.FcntlInt(uintptr(descriptor), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	reading, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.Dup3(reading, descriptor, unix.O_CLOEXEC), unix.Close(reading))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		if err := errors.Join(unix.Dup3(saved, descriptor, unix.O_CLOEXEC), unix.Close(saved)); err != nil {
			s.t.Error(err)
		}
	})
}

// TestFailingDisk covers a disk that takes nothing: hdsd decides and publishes health, answers operators at
// once, and reports the failure everywhere.
func TestFailingDisk(t *testing.T) {
	t.Parallel()
	address, status := upstream(t)
	s := newSite(t, t.TempDir(), quick, static("web", address))
	s.ready()
	for _, id := range []string{"a", "b", "c"} {
		s.checker(id)
	}
	s.eventually("it to be up", func() bool { return s.healthOf("web", address) == "HEALTHY" })
	if _, text := s.get("/readyz"); text != "ready\n" {
		t.Errorf("/readyz with a good disk: %q", text)
	}

	heal := s.failingDisk()
	defer heal()
	status.Store(http.StatusServiceUnavailable)
	s.eventually("it to be down", func() bool { return s.healthOf("web", address) == "UNHEALTHY" })
	for path, body := range map[string]string{
		"/v1/freeze":    `{"reason":"moving"}`,
		"/v1/overrides": `{"cluster":"web","health":"DRAINING","reason":"moving"}`,
		"/v1/trust":     `{"checker":"a","word":"TRUSTED","reason":"moving"}`,
	} {
		if text := string(s.post(path, body)); !strings.Contains(text, `"notDurable":"`) || !strings.Contains(text, "but a restart undoes that") {
			t.Errorf("POST %s: %s", path, text)
		}
	}
	if text := string(s.post("/v1/clock", `{}`)); !strings.Contains(text, "nothing has changed") || strings.Contains(text, "deadline") {
		t.Errorf("POST /v1/clock: %s", text)
	}
	if code, text := s.get("/readyz"); code != http.StatusOK || !strings.Contains(text, "\nhistory failing: history: write ") {
		t.Errorf("/readyz: %d %q", code, text)
	}
	if failing := s.transitions().Failing; failing == "" {
		t.Error("/v1/transitions does not say that the history waits")
	}
	if s.scrape().sum("hdsd_history_failing") != 1 {
		t.Error("hdsd_history_failing is not 1")
	}

	heal()
	s.eventually("the history to have what waited", func() bool {
		page := s.transitions()
		return page.Failing == "" && len(page.Transitions) > 0 && page.Transitions[len(page.Transitions)-1].To == "DRAINING"
	})
	if _, text := s.get("/readyz"); strings.Contains(text, "failing") {
		t.Errorf("/readyz when the disk is well again: %q", text)
	}
}

// TestRequiredDisk covers /readyz and gRPC health, which reports the change at once. A reload changes the
// setting.
func TestRequiredDisk(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	demanding, clusters := quick+"\nhistory: {require_writable: true}\n", static("web", address)
	s := newSite(t, t.TempDir(), demanding, clusters)
	s.ready()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	watch, err := grpc_health_v1.NewHealthClient(s.dial()).Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want grpc_health_v1.HealthCheckResponse_ServingStatus) {
		t.Helper()
		for {
			if got, err := watch.Recv(); err != nil {
				t.Fatal(err)
			} else if got.GetStatus() == want {
				return
			}
		}
	}
	expect(grpc_health_v1.HealthCheckResponse_SERVING)
	heal := s.failingDisk()
	defer heal()
	s.post("/v1/freeze", `{"reason":"moving"}`)
	if code, text := s.get("/readyz"); code != http.StatusServiceUnavailable || !strings.HasPrefix(text, "not ready: history failing: ") {
		t.Errorf("/readyz: %d %q", code, text)
	}
	expect(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	for _, step := range []struct {
		text string
		want grpc_health_v1.HealthCheckResponse_ServingStatus
	}{{quick, grpc_health_v1.HealthCheckResponse_SERVING}, {demanding, grpc_health_v1.HealthCheckResponse_NOT_SERVING}} {
		if _, err := s.Reload(configuration(t, s.dir, step.text, clusters)); err != nil {
			t.Fatal(err)
		}
		expect(step.want)
	}
	heal()
	expect(grpc_health_v1.HealthCheckResponse_SERVING)
	s.ready()
}

type transitionsJSON struct {
	Transitions []struct{ From, To string }
	Failing     string
}

func (s *site) transitions() (page transitionsJSON) {
	s.t.Helper()
	_, text := s.get("/v1/transitions")
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		s.t.Fatal(err)
	}
	return page
}
