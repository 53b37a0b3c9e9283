package relay

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hdsd/internal/wire"
	"hdsd/relay/message"
)

// control is a control plane that notes what it gets and when.
type control struct {
	start    time.Time
	messages []string
	times    []time.Duration
}

func (c *control) SendMsg(m any) error {
	c.messages, c.times = append(c.messages, string(*m.(*wire.Bytes))), append(c.times, time.Since(c.start))
	return nil
}

// TestNACKsWait: ten go out at once, then the latest of its type each second. Other requests go
// out at once, and so do NACKs that subscribe, after what they follow.
func TestNACKsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plane := &control{start: time.Now()}
		n := newNACKs(newWriter(plane, time.Minute, nil), func(run func()) { go run() })
		say := func(typeURL, text string, refuses, changes bool) {
			t.Helper()
			h := &message.Head{TypeURL: typeURL, Changes: changes}
			if refuses {
				h.Refusal = []byte{}
			}
			if err := n.write(t.Context(), h, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			say("a", "first", true, false)
		}
		say("a", "lost", true, false)
		say("a", "second", true, false)
		say("b", "ACK", false, false)
		say("b", "NACK", true, false)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		want := append(slices.Repeat([]string{"first"}, 10), "ACK", "NACK", "second")
		if !slices.Equal(plane.messages, want) || plane.times[11] != 0 || plane.times[12] != time.Second {
			t.Fatalf("it got %q after %v", plane.messages, plane.times)
		}
		plane.messages, plane.start = nil, time.Now()
		for range 10 { // as many as go out at once, less those of the seconds that passed
			say("a", "again", true, false)
		}
		say("a", "ACK", false, false)
		say("a", "subscribes", true, true)
		synctest.Wait()
		if got := plane.messages[len(plane.messages)-3:]; !slices.Equal(got, []string{"again", "ACK", "subscribes"}) || len(plane.messages) > 5 {
			t.Errorf("it got %q", plane.messages)
		}
	})
}

// TestNACKsThatWaitAreBounded: beyond that, the client's next requests wait.
func TestNACKsThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plane := &control{start: time.Now()}
		n := newNACKs(newWriter(plane, time.Minute, nil), func(run func()) { go run() })
		large := make([]byte, largeMessage)
		for _, typeURL := range []string{"a", "b", "c", "d", "e"} {
			for range 11 {
				if err := n.write(t.Context(), &message.Head{TypeURL: typeURL, Refusal: []byte{}}, large); err != nil {
					t.Fatal(err)
				}
			}
		}
		if waited := time.Since(plane.start); waited != time.Second || n.bytes > maxHeld {
			t.Errorf("after %v, %d bytes wait", waited, n.bytes)
		}
	})
}
