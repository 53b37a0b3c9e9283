package canary

import (
	"hdsd/envoy/specifier"
	"maps"
	"reflect"
	"testing"
)

// records returns what the store has.
func (d *desk) records() map[string]*Record {
	if d.stored == nil {
		d.stored = map[string]*Record{}
	}
	for name, r := range d.Changed() {
		if delete(d.stored, name); r != nil {
			d.stored[name] = r
		}
	}
	return d.stored
}

// restore takes up what another desk has stored.
func (d *desk) restore(from *desk) {
	d.stored = maps.Clone(from.records())
	for _, r := range d.stored {
		d.Restore(*r)
	}
}

func TestRecordsSurviveARestart(t *testing.T) {
	d := newDesk(t, "a", "b")
	d.set("good", 1, 2)
	d.prove("a", "good")
	d.set("bad", 3)
	d.condemn("bad", "a", "b")
	d.set("suspect", 4)
	d.try("a", "suspect")
	d.Lost(d.now, "a")
	d.set("untried", 5)
	if n := len(d.records()); n != 4 {
		t.Errorf("%d records: %v, want one for each of two proven shapes and of two charges", n, d.records())
	}
	again := newDesk(t, "a", "b")
	again.restore(d)
	again.set("good", 1, 2)
	again.set("another", 2)
	again.set("bad", 3)
	again.set("suspect", 4)
	again.ForgetAbsent()
	again.want("good", again.proven("good"), true)
	again.want("another", again.proven("another"), true)
	again.want("bad", again.Blocked("bad"), true)
	again.want("suspect", len(again.Standing("suspect").Losses) == 1, true)
	if !reflect.DeepEqual(d.records(), again.records()) {
		t.Errorf("%+v, before %+v", again.records(), d.records())
	}
}

// TestWhatIsGoneIsForgotten: blame at once, and all but a number of proofs.
func TestWhatIsGoneIsForgotten(t *testing.T) {
	d := newDesk(t, "a", "b")
	d.set("bad", 1<<40)
	d.condemn("bad", "a", "b")
	again := newDesk(t, "a", "b")
	again.restore(d)
	again.ForgetAbsent()
	if n := len(again.records()); n != 0 || again.BlockedClusters() != 0 {
		t.Errorf("%d records of a cluster that is gone", n)
	}
	var shapes []specifier.Shape
	for i := range maxUnused + 100 {
		shapes = append(shapes, specifier.Shape(i))
	}
	d = again
	d.set("large", shapes...)
	d.prove("a", "large")
	d.set("small", 1, 2)
	d.Remove(d.now, "large")
	if n := len(d.records()); n != maxUnused+2 {
		t.Errorf("%d records, want those of %d shapes that are not used, and of 2", n, maxUnused)
	}
	d.want("what is used", d.proven("small"), true)
	d.set("another", maxUnused+99)
	d.want("what returns", d.proven("another"), true)
}
