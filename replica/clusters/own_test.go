package clusters

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"hdsd/catalog"
)

// TestALeaderKeepsNothingToTell covers a leader whose clusters change for long: nobody asks for what has changed, nor
// for the versions of before.
func TestALeaderKeepsNothingToTell(t *testing.T) {
	o := NewOwn()
	deliver := func(d *catalog.Delivery) {
		d.Rules, d.Complete = ruleSet, true
		o.Deliver(d)
	}
	prepare := func(name string, numbers ...int) catalog.Change {
		return catalog.Change{Cluster: catalog.Prepare(web(name, "/", numbers...), ruleSet)}
	}
	deliver(&catalog.Delivery{})
	o.Take()
	o.Restart()
	for i := range 1000 {
		name := fmt.Sprint("c", i)
		deliver(&catalog.Delivery{Changed: []catalog.Change{prepare(name, 1)}})
		deliver(&catalog.Delivery{Removed: []string{name}})
	}
	if len(o.dirty) > 0 {
		t.Errorf("it remembers %d names", len(o.dirty))
	}
	first := prepare("web", 1)
	deliver(&catalog.Delivery{Changed: []catalog.Change{first}})
	before := weak.Make(first.Cluster)
	first = catalog.Change{}
	deliver(&catalog.Delivery{Changed: []catalog.Change{prepare("web", 2)}})
	if runtime.GC(); before.Value() != nil {
		t.Error("it keeps the version of before")
	}
	if u := o.Take(); len(u.Changed) != 1 || !u.Begin || !u.End || u.Changed[0].Name != "web" {
		t.Errorf("it lists %+v", u)
	}
}
