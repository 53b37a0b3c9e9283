package coordinator

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"hdsd/machine"
)

// TestSlowEventStoresTrace covers that quick events store none.
func TestSlowEventStoresTrace(t *testing.T) {
	logged := make(chan string, 10)
	a, err := newAdmin("127.0.0.1:0", t.TempDir(), zerolog.New(lines(logged)))
	if err != nil {
		t.Fatal(err)
	}
	defer a.listener.Close()
	if err := a.recorder.Start(); err != nil {
		t.Fatal(err)
	}
	defer a.recorder.Stop()
	a.running.Go(a.watch)
	defer func() { close(a.done); a.running.Wait() }()
	l := newCore(machine.Timing{Report: time.Second}, zerolog.Nop(), newMetrics(prometheus.NewRegistry()), nil, nil)
	l.onStep = a.observeStep
	l.measure(time.Now())
	l.measure(time.Now().Add(-slowEvent))
	l.measure(time.Now().Add(-time.Hour)) // within the minute
	line := <-logged
	if !strings.Contains(line, `"event":"event_slow"`) {
		t.Errorf("logged %s", line)
	}
	traces := kept(t, a)
	if len(traces) != 1 {
		t.Fatalf("%d traces are kept", len(traces))
	}
	text, err := os.ReadFile(traces[0])
	if err != nil || !bytes.HasPrefix(text, []byte("go 1.")) {
		t.Errorf("%.20q is no trace, %v", text, err)
	}
}

// TestPruneTraces covers that the newest traces stay.
func TestPruneTraces(t *testing.T) {
	a := &admin{folder: t.TempDir()}
	var all []string
	for i := range 2 * maxTraces {
		path := filepath.Join(a.folder, time.Unix(int64(i), 0).UTC().Format(traceName))
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		all = append(all, path)
		if err := a.prune(); err != nil {
			t.Fatal(err)
		}
	}
	if got := kept(t, a); !slices.Equal(got, all[maxTraces:]) {
		t.Errorf("%v are kept", got)
	}
}

func kept(t *testing.T, a *admin) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(a.folder, "*.trace"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// lines sends each line of a log.
type lines chan string

func (l lines) Write(line []byte) (int, error) { l <- string(line); return len(line), nil }
