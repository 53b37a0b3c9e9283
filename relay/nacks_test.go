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
	began time.Time
	got   []string
	after []time.Duration
}

func (c *control) SendMsg(m any) error {
	c.got, c.after = append(c.got, string(*m.(*wire.Bytes))), append(c.after, time.Since(c.began))
	return nil
}

// TestNACKsWait: ten go out at once, then the latest of its type each second. Other requests go
// out at once, and so do NACKs that subscribe, after what they follow.
func TestNACKsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		to := &control{began: time.Now()}
		n := newNACKs(newWriter(to, time.Minute, nil), func(run func()) { go run() })
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
		if !slices.Equal(to.got, want) || to.after[11] != 0 || to.after[12] != time.Second {
			t.Fatalf("it got %q after %v", to.got, to.after)
		}
		to.got, to.began = nil, time.Now()
		for range 10 { // as many as go out at once, less those of the seconds that passed
			say("a", "again", true, false)
		}
		say("a", "ACK", false, false)
		say("a", "subscribes", true, true)
		synctest.Wait()
		if got := to.got[len(to.got)-3:]; !slices.Equal(got, []string{"again", "ACK", "subscribes"}) || len(to.got) > 5 {
			t.Errorf("it got %q", to.got)
		}
	})
}

// TestNACKsThatWaitAreBounded: beyond that, the client's next requests wait.
func TestNACKsThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		to := &control{began: time.Now()}
		n := newNACKs(newWriter(to, time.Minute, nil), func(run func()) { go run() })
		large := make([]byte, largeMessage)
		for _, typeURL := range []string{"a", "b", "c", "d", "e"} {
			for range 11 {
				if err := n.write(t.Context(), &message.Head{TypeURL: typeURL, Refusal: []byte{}}, large); err != nil {
					t.Fatal(err)
				}
			}
		}
		if waited := time.Since(to.began); waited != time.Second || n.bytes > maxHeld {
			t.Errorf("after %v, %d bytes wait", waited, n.bytes)
		}
	})
}
