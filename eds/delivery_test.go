package eds

import (
	"testing"
	"time"
)

// frameOf makes a frame of a version.
func frameOf(version uint64) *frame {
	f := newFrame("type", "name", []byte("message"))
	f.setVersion(version)
	return f
}

func TestDeliveryCountsOnlyAnswersToTheOutstandingResponse(t *testing.T) {
	var d delivery
	w, now := watchNamed("a"), time.Unix(1, 0)
	d.begin("1", []sending{d.add(w, frameOf(7), 1, 0)})
	equal(t, "pending", w.state, pending)
	equal(t, "has nothing yet", w.heldVersion(), 0)
	_, current := d.answer("0", nil, now, 1000)
	equal(t, "another nonce", current, false)
	equal(t, "is not stale while one is outstanding", d.stale("0"), false)

	sent, current := d.answer("1", nil, now, 1000)
	equal(t, "the nonce", current && len(sent) == 1, true)
	equal(t, "accepted", w.state, accepted)
	equal(t, "has it", w.heldVersion(), 7)
	equal(t, "acknowledged", d.lastAck, now)
	_, current = d.answer("1", nil, now, 1000)
	equal(t, "again", current, false)
	equal(t, "an older one", d.stale("0"), true)
	equal(t, "the latest", d.stale("1"), false)
}

func TestDeliveryKeepsWhatWasRefusedWithinBounds(t *testing.T) {
	var d delivery
	first, second := watchNamed("a"), watchNamed("b")
	d.resume(first, 3)
	f := frameOf(7)
	d.begin("1", []sending{d.add(first, f, 1, 0), d.add(second, f, 1, 0)})
	d.answer("1", newRefusal("no"), time.Unix(1, 0), f.size())
	equal(t, "refused", first.state, refused)
	equal(t, "has what it had", first.heldVersion(), 3)
	equal(t, "had nothing", second.heldVersion(), 0)
	equal(t, "one is kept", first.failure.frame, f)
	equal(t, "the other is too much", second.failure.frame, nil)
	equal(t, "its version is kept", second.failure.version, 7)
	equal(t, "bytes", d.refused, f.size())
	d.clearFailure(first)
	d.clearFailure(second)
	equal(t, "bytes in the end", d.refused, 0)
}

func TestDeliveryRemembersWhatIsUnderWayToAClientThatUnsubscribed(t *testing.T) {
	var d delivery
	w := watchNamed("a")
	d.begin("1", []sending{d.add(w, frameOf(7), 1, 0)})
	equal(t, "subscribed", len(d.unsubscribed()), 0)
	w.closed = true
	equal(t, "unsubscribed", d.unsubscribed()["a"], 7)
	again := watchNamed("a")
	d.remember(again, 7)
	equal(t, "subscribed again", again.sent, 7)
	equal(t, "not accepted", again.heldVersion(), 0)
}
