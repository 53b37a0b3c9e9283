package recording

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"hdsd/envoy/specifier"
	"hdsd/machine"
)

// Result is what a replay has found.
type Result struct {
	Events     uint64
	Decisions  uint64    // effects that are a machine.Decided
	Last       time.Time // of the last event; zero: there is none
	Reason     Reason    // why the recording ends
	Difference string    // where the machine did not do as recorded, and how; empty: it did
}

// Replay has a machine handle the events of a recording, up to the first that has other effects than then.
// See is called with each effect and its event; the effect is valid until see returns. The error is one of
// the file: what comes before it has been replayed.
func Replay(r *Reader, see func(*Entry, machine.Effect)) (result Result, err error) {
	m := machine.New(r.Timing)
	m.Restore(r.State)
	made, d := specifiers{}, newDigest()
	r.Specifier = made.find
	for {
		e, err := r.Next()
		if result.Reason = e.Reason; err != nil || e.Event == nil {
			return result, err
		}
		result.Events++
		result.Last = e.Time
		panicked := attempt(func() {
			m.Step(e.Time, e.Event, func(effect machine.Effect) {
				d.add(effect)
				made.take(effect)
				if _, ok := effect.(machine.Decided); ok {
					result.Decisions++
				}
				see(&e, effect)
			})
		})
		if difference := d.compare(&e, panicked); difference != "" {
			name := strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", e.Event), "*"), "machine.")
			result.Difference = fmt.Sprintf("event %d (%s, %s): %s", result.Events, name, e.Time.UTC().Format(time.RFC3339Nano), difference)
			return result, nil
		}
	}
}

// compare says how the effects of an event differ from those then; empty if they do not. It begins with
// the next event.
func (d *digest) compare(e *Entry, panicked string) string {
	effects := d.effects
	d.effects = 0
	switch {
	case len(e.Differs) > 0:
		return "hdsd checks other endpoints than then of " + strings.Join(e.Differs, ", ")
	case panicked != "":
		return panicked
	case !e.Ended:
		return ""
	case effects != e.Effects:
		return fmt.Sprintf("it had %d effects then, and has %d now", e.Effects, effects)
	case effects > 0 && d.sum() != e.Sum:
		return fmt.Sprintf("it has other effects than then (%d of them)", effects)
	}
	return ""
}

// attempt returns what a function panics with, and where; empty if it does not.
func attempt(f func()) (panicked string) {
	defer func() {
		if p := recover(); p != nil {
			panicked = fmt.Sprintf("hdsd ends with it: %v\n%s", p, debug.Stack())
		}
	}()
	f()
	return ""
}

// specifiers are those that were made, by checker, from the last on that the checker has followed.
type specifiers map[string][]*specifier.Specifier

func (s specifiers) take(e machine.Effect) {
	if e, ok := e.(machine.Specified); ok {
		s[e.Checker] = append(s[e.Checker], e.Specifier)
	}
}

func (s specifiers) find(checker string, serial uint64) *specifier.Specifier {
	for i, made := range s[checker] {
		if made.Serial == serial {
			s[checker] = s[checker][i:]
			return made
		}
	}
	return nil
}
