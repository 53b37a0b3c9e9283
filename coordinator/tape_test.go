package coordinator

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/machine/recording"
)

// tapedLab is a lab with a recording in a file.
type tapedLab struct {
	*lab
	path string
	log  bytes.Buffer
}

func newTaped(t testing.TB, limit uint64) *tapedLab {
	l := &tapedLab{lab: newLab(t), path: filepath.Join(t.TempDir(), "events.hdsd")}
	l.onStart = func(c *core, state *log.State) {
		header := recording.Header{Version: "1.2.3", Start: l.now, Timing: l.timing}
		from := &configv1.Config{Recording: &configv1.Recording{File: l.path, MaxBytes: limit}}
		c.tape, c.recording = newTape(from, header, state, zerolog.New(&l.log))
	}
	l.start(nil)
	return l
}

// finish ends the core, and returns the result of a replay of the file.
func (l *tapedLab) finish() recording.Result {
	l.t.Helper()
	l.core.tape.finish(l.core.recording)
	file, err := os.Open(l.path)
	if err != nil {
		l.t.Fatal(err)
	}
	defer file.Close()
	r, err := recording.NewReader(file, time.Now())
	if err != nil {
		l.t.Fatal(err)
	}
	result, err := recording.Replay(r, func(*recording.Entry, machine.Effect) error { return nil })
	if err != nil || result.Difference != "" {
		l.t.Fatalf("%+v, %v", result, err)
	}
	return result
}

// wantLog compares the events of the log.
func (l *tapedLab) wantLog(want ...string) {
	l.t.Helper()
	var got []string
	for line := range strings.Lines(l.log.String()) {
		_, rest, _ := strings.Cut(line, `"event":"`)
		event, _, _ := strings.Cut(rest, `"`)
		got = append(got, event)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		l.t.Errorf("logged %v, want %v: %s", got, want, l.log.String())
	}
}

// TestRecordingEnds covers a full file, a slow disk, a stop and a panic. The core continues in any case.
func TestRecordingEnds(t *testing.T) {
	tick := func(l *tapedLab, n int) {
		for range n {
			l.now = l.now.Add(report)
			l.step(machine.Tick{})
		}
	}
	const whole = 1 << 30
	for name, test := range map[string]struct {
		limit  uint64
		live   func(l *tapedLab, begin func())
		reason recording.Reason
		log    []string
		events uint64 // at least
	}{
		"stopped": {whole, func(l *tapedLab, begin func()) { begin(); tick(l, 100) }, recording.Stopped, []string{"recording_started"}, 100},
		"full":    {1, func(l *tapedLab, begin func()) { tick(l, 1); begin(); tick(l, 1000) }, recording.Full, []string{"recording_started", "recording_ended"}, 1},
		"behind":  {whole, func(l *tapedLab, begin func()) { tick(l, tapeSize+100); begin() }, recording.Behind, []string{"recording_started", "recording_ended"}, tapeSize},
		"panicked": {whole, func(l *tapedLab, begin func()) {
			begin()
			tick(l, 10)
			l.core.observers = append(l.core.observers, broken{})
			l.core.events <- message{event: machine.Answered{}}
			stop := make(chan struct{})
			defer close(stop)
			defer func() {
				if recover() == nil {
					t.Error("the core does not panic")
				}
			}()
			l.core.run(stop)
		}, recording.Panicked, []string{"recording_started"}, 11},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTaped(t, test.limit)
			var running sync.WaitGroup
			test.live(l, func() { running.Go(l.core.tape.run) })
			got := l.finish()
			running.Wait()
			if got.Reason != test.reason || got.Events < test.events {
				t.Errorf("%+v, want %q after %d events", got, test.reason, test.events)
			}
			l.wantLog(test.log...)
		})
	}
}

// broken is an observer with a fault.
type broken struct{}

func (broken) observe(_ time.Time, e machine.Effect) {
	if _, ok := e.(machine.SourcesAnswered); ok {
		panic("a fault")
	}
}

// TestUnwritableRecording covers that hdsd starts and stops without the recording.
func TestUnwritableRecording(t *testing.T) {
	l := newTaped(t, 1<<30)
	l.path = filepath.Join(t.TempDir(), "missing", "events.hdsd")
	l.log.Reset()
	l.start(nil)
	l.join("c0a")
	if l.core.tape.finish(l.core.recording); l.core.tape != nil || l.core.recording != nil {
		t.Error("there is a recording")
	}
	l.wantLog("recording_failed")

	l = newTaped(t, 1<<30)
	l.core.tape.file.Close()
	l.join("c0a")
	var running sync.WaitGroup
	running.Go(l.core.tape.run)
	l.core.tape.finish(l.core.recording)
	running.Wait()
	l.wantLog("recording_started", "recording_failed")
}

// TestPreviousRecordingIsKept covers one start.
func TestPreviousRecordingIsKept(t *testing.T) {
	l := newTaped(t, 1<<30)
	l.core.tape.discard()
	first, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	l.start(nil)
	l.core.tape.discard()
	if kept, err := os.ReadFile(l.path + previousSuffix); err != nil || !bytes.Equal(kept, first) {
		t.Errorf("%d bytes are kept, want %d: %v", len(kept), len(first), err)
	}
}

// BenchmarkRecording measures the cost of a recording for the core: a report without votes, a report with an
// unchanged vote, and a round in which an endpoint goes down or up.
func BenchmarkRecording(b *testing.B) {
	for _, recorded := range []bool{false, true} {
		l := newTaped(b, 1<<40)
		var running sync.WaitGroup
		if recorded {
			running.Go(l.core.tape.run)
		} else {
			l.core.tape.discard()
			l.core.tape, l.core.recording = nil, nil
		}
		addresses := make([]string, 100)
		for i := range addresses {
			addresses[i] = fmt.Sprintf("10.0.0.%d:80", i+1)
		}
		l.serve(web("web", addresses...))
		ids := []string{"c0a", "c1b", "c2c"}
		l.join(ids...)
		l.pass(settle + 20*report)
		endpoint := l.checkers["c0a"].spec.Order[0]
		say := func(votes ...health.Vote) {
			for _, id := range ids {
				l.now = l.now.Add(time.Millisecond)
				l.step(machine.Reported{Checker: id, Votes: votes})
			}
		}
		mode := map[bool]string{false: "none", true: "recorded"}[recorded]
		for _, report := range []struct {
			name string
			say  func(round int)
		}{
			{"empty", func(int) { say() }},
			{"same", func(int) { say(health.Vote{Endpoint: endpoint, Status: up}) }},
			{"flip", func(round int) { say(health.Vote{Endpoint: endpoint, Status: []health.Status{down, up}[round%2]}) }},
		} {
			b.Run(report.name+"/"+mode, func(b *testing.B) {
				b.ReportAllocs()
				for round := 0; b.Loop(); round++ {
					report.say(round)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(3*b.N), "ns/report")
			})
		}
		l.core.tape.finish(l.core.recording)
		running.Wait()
	}
}
