package recording

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"hdsd/envoy/specifier"
	"hdsd/machine"
)

// Result is the result of a replay.
type Result struct {
	Events     uint64
	Decisions  uint64    // number of entries of the log
	Last       time.Time // time of the last event; zero without events
	Reason     Reason    // of the end of the recording
	Difference string    // first difference from the recording; empty if there is none
}

// Replay lets a machine handle the events of a recording, up to the first event whose effects differ from
// the recorded ones. It passes each effect and its event to visit; the effect is valid until visit returns.
// Replay returns the first error of the file or of visit, with the result up to there.
func Replay(r *Reader, visit func(*Entry, machine.Effect) error) (result Result, err error) {
	m := machine.New(r.Timing)
	m.Restore(r.State)
	made, d := specifiers{}, newDigest()
	r.FindSpecifier = made.find
	for {
		e, err := r.Next()
		if result.Reason = e.Reason; err != nil || e.Event == nil {
			return result, err
		}
		result.Events++
		result.Last = e.Time
		var failure error
		panicked := catchPanic(func() {
			m.Step(e.Time, e.Event, func(effect machine.Effect) {
				d.add(effect)
				made.add(effect)
				if _, ok := effect.(machine.Logged); ok {
					result.Decisions++
				}
				if failure == nil {
					failure = visit(&e, effect)
				}
			})
		})
		if failure != nil {
			return result, failure
		}
		if difference := d.compare(&e, panicked); difference != "" {
			name := strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", e.Event), "*"), "machine.")
			result.Difference = fmt.Sprintf("event %d (%s, %s): %s", result.Events, name, e.Time.UTC().Format(time.RFC3339Nano), difference)
			return result, nil
		}
	}
}

// compare returns the difference of the effects of an event from the recorded ones; empty if there is none.
// It also begins the next event.
func (d *digest) compare(e *Entry, panicked string) string {
	effects := d.effects
	d.effects = 0
	switch {
	case len(e.Differing) > 0:
		return "hdsd checks other endpoints than then of " + strings.Join(e.Differing, ", ")
	case panicked != "":
		return panicked
	case !e.Ended:
		return ""
	case effects != e.Effects:
		return fmt.Sprintf("it had %d effects then, and has %d now", e.Effects, effects)
	case effects > 0 && d.sum() != e.Digest:
		return fmt.Sprintf("it has other effects than then (%d of them)", effects)
	}
	return ""
}

// catchPanic runs a function. It returns its panic and the stack as text; empty if there is no panic.
func catchPanic(f func()) (panicked string) {
	defer func() {
		if p := recover(); p != nil {
			panicked = fmt.Sprintf("hdsd ends with it: %v\n%s", p, debug.Stack())
		}
	}()
	f()
	return ""
}

// specifiers holds the specifiers of a replay by checker: the latest one that the checker follows, and newer
// ones.
type specifiers map[string][]*specifier.Specifier

func (s specifiers) add(e machine.Effect) {
	if e, ok := e.(machine.SpecifierMade); ok {
		s[e.Checker] = append(s[e.Checker], e.Specifier)
	}
}

// find returns a specifier that a checker follows, and drops older ones.
func (s specifiers) find(checker string, serial uint64) *specifier.Specifier {
	for i, found := range s[checker] {
		if found.Serial == serial {
			s[checker] = s[checker][i:]
			return found
		}
	}
	return nil
}
