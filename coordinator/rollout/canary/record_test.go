package canary

import (
	"maps"
	"reflect"
	"testing"
	"time"
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
	for name, r := range d.stored {
		d.Restore(name, *r)
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
	var shapes []Shape
	for i := range maxUnused + 100 {
		shapes = append(shapes, Shape(i))
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

// former is what a shape was called when it had the name of a cluster in it.
func former(shapes ...Shape) map[Shape]Shape {
	all := map[Shape]Shape{}
	for _, s := range shapes {
		all[s] = 1000 + s
	}
	return all
}

// TestRecordsOfClustersAreTakenOver: earlier versions of hdsd kept one for each cluster.
func TestRecordsOfClustersAreTakenOver(t *testing.T) {
	build := BuildOf(checkerOf("a"))
	losses := []Loss{{Checker: "x", Identity: "x", Time: epoch}, {Checker: "y", Identity: "y", Time: epoch.Add(time.Minute)}}
	d := newDesk(t, "a", "b")
	d.Restore("good", Record{Proven: []Proof{{build, 1001}, {build, 1999}}})
	d.Restore("bad", Record{Proven: []Proof{{build, 1001}}, Blamed: []Shape{1002, 1003}, Losses: losses, Retries: 1})
	d.Restore("suspect", Record{Blamed: []Shape{1004}, Losses: losses[:1]})
	d.Restore("changed", Record{Blamed: []Shape{1005, 1006}, Losses: losses})
	d.Restore("gone", Record{Proven: []Proof{{build, 1007}}})
	for name, shapes := range map[string][]Shape{"good": {1}, "bad": {1, 2, 3}, "suspect": {4}, "changed": {5}} {
		d.want(name+" has a record", d.HasRecord(name), true)
		d.Set(d.now, name, Version{Shapes: shapes, Probe: time.Second, Former: former(shapes...)})
		d.want(name+" has a record then", d.HasRecord(name), false)
	}
	d.set("like it", 3, 2, 1)
	d.ForgetAbsent()
	d.want("good", d.proven("good"), true)
	d.want("bad", d.Blocked("bad"), true)
	d.want("like it", d.Blocked("like it"), true)
	if until := d.Standing("bad").Retry; !until.Equal(losses[1].Time.Add(2 * firstBlockedRetry)) {
		t.Errorf("it is retried at %v", until)
	}
	d.want("suspect", len(d.Standing("suspect").Losses) == 1, true)
	d.want("changed is suspect", len(d.Standing("changed").Losses) > 0, false)
	d.want("gone has a record", d.HasRecord("gone"), false)
	changed := d.Changed()
	for _, name := range []string{"good", "bad", "suspect", "changed", "gone"} {
		r, told := changed[name]
		d.want(name+" is removed", told && r == nil, true)
	}
	if len(changed) != 5+3 {
		t.Errorf("%d records changed, want three new ones", len(changed))
	}
}
