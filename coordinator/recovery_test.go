package coordinator_test

import (
	"net/http"
	"strings"
	"testing"

	"hdsd/test/etcd"
)

// TestReplicasRecover covers an etcd that is wiped, and set back too far, until an operator restores the right snapshot. The
// replicas say what is wrong, and go on without a restart.
func TestReplicasRecover(t *testing.T) {
	t.Parallel()
	address, status := upstream(t)
	server := etcd.Start(t)
	f := newFleet(t, server, static("web", address), "r1", "r2")
	f.sites["r1"].ready()
	f.sites["r2"].ready()
	server.Kill()
	old := server.Snapshot()
	server.Restart()
	f.sites["r1"].checker("c1")
	f.eventually("web", address, "HEALTHY")
	for _, loss := range []struct {
		advice string
		lose   func()
		next   int
		health string
	}{
		{"etcd has lost this fleet", server.Wipe, http.StatusServiceUnavailable, "UNHEALTHY"},
		{"as if etcd was restored from an old snapshot", old, http.StatusOK, "HEALTHY"},
	} {
		server.Kill()
		latest := server.Snapshot()
		loss.lose()
		server.Restart()
		for id, s := range f.sites {
			s.eventually(id+" to say that "+loss.advice, func() bool {
				code, text := s.get("/readyz")
				return code == http.StatusServiceUnavailable && strings.Contains(text, loss.advice) && !strings.Contains(text, "entry 0")
			})
		}
		server.Kill()
		latest()
		server.Restart()
		for _, s := range f.sites {
			s.ready()
		}
		status.Store(int32(loss.next))
		f.eventually("web", address, loss.health)
	}
	f.same("/v1/transitions?cluster=web")
}
