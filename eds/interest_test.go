package eds

import (
	"fmt"
	"testing"
)

func TestInterestCountsNames(t *testing.T) {
	i := interest{watches: map[string]*watch{}}
	a, b := watchNamed("a"), watchNamed("bb")
	i.watches["a"], i.watches["bb"] = a, b
	for range 2 {
		i.setNamed(a, true)
		i.setNamed(b, true)
	}
	equal(t, "names", fmt.Sprint(i.named, i.bytes), "2 3")
	equal(t, "as many as may be", i.check(limits{names: 3, bytes: 6}, "ccc"), nil)
	equal(t, "one name too many", i.check(limits{names: 2, bytes: 6}, "ccc") != nil, true)
	equal(t, "too many bytes", i.check(limits{names: 3, bytes: 5}, "ccc") != nil, true)
	equal(t, "beside", fmt.Sprint(i.unwanted(map[string]struct{}{"a": {}})), "[bb]")
	i.remove(b)
	equal(t, "names", fmt.Sprint(i.named, i.bytes, b.closed, i.includes("bb")), "1 1 true false")
	i.wildcard = true
	equal(t, "everything", i.includes("bb"), true)
}

func TestInterestFindsOneLocatorByName(t *testing.T) {
	i := interest{watches: map[string]*watch{}}
	located := func(name, choice string) {
		w := &watch{slot: newVariant(&slot{name: name}, choice), located: true}
		i.watches[w.key()] = w
		i.setNamed(w, true)
	}
	equal(t, "none", len(i.locatedByName()), 0)
	located("a", "=x")
	located("b", "=x")
	located("b", "=y")
	found := i.locatedByName()
	equal(t, "one variant", found["a"].key(), "a"+separator+"=x")
	equal(t, "several variants", found["b"], nil)
}
