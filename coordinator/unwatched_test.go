//go:build !race || soak

package coordinator

import (
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hdsd/health"
)

// TestLogOfNoCheckers covers one error while health stays, and its end with the duration.
func TestLogOfNoCheckers(t *testing.T) {
	l := newLab(t)
	var log strings.Builder
	l.core.eventLog.log = zerolog.New(&log)
	l.serve(web("web", "10.0.0.1:80"))
	l.join("c0a", "c1b")
	l.pass(settle + 10*time.Second)
	const none, over = `{"level":"error","event":"no_checkers",`, `{"level":"info","event":"no_checkers_over","lasted":20000,`
	l.lose("c0a")
	if strings.Contains(log.String(), "no_checkers") {
		t.Errorf("it is told while one is left: %s", log.String())
	}
	l.lose("c1b")
	l.pass(20 * time.Second)
	l.wantPublished("web", "10.0.0.1:80", health.Healthy)
	l.join("c0a")
	if got := log.String(); strings.Count(got, none) != 1 || strings.Count(got, over) != 1 || strings.Count(got, "no_checkers") != 2 {
		t.Errorf("the log is %s", got)
	}
}
