package relay

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/relay/message"
)

// past is a memory of one node, and the time.
type past struct {
	t   testing.TB
	m   *memory
	key nodeKey
	now time.Time
}

func newPast(t testing.TB, delta bool) *past {
	t.Helper()
	m := newMemory(newStock(100, 1<<20, nil), time.Minute)
	return &past{t, m, nodeKey{kind: clusters, delta: delta}, time.Now()}
}

// asking is the scope of a stream that asks for names; "*": for all there is.
func (p *past) asking(names []string) scope {
	asks := scope{wildcard: slices.Contains(names, "*")}
	if !p.key.delta {
		asks.names = hashOf(names)
	}
	return asks
}

// ledger is that of a stream that asks for names and has clusters.
func (p *past) ledger(asked, version string, has ...string) *ledger {
	p.t.Helper()
	l := newLedger(p.key.kind, p.key.delta, p.key.node, p.m, "", nil)
	l.asks, l.version = p.asking(strings.Fields(asked)), version
	for _, name := range has {
		packed, err := anypb.New(&clusterv3.Cluster{Name: name, AltStatName: version})
		if err != nil {
			p.t.Fatal(err)
		}
		wire, err := proto.Marshal(packed)
		if err != nil {
			p.t.Fatal(err)
		}
		i, _, err := p.m.stock.take(clusters, false, wire)
		if err != nil {
			p.t.Fatal(err)
		}
		l.held.put(i.with(0))
		l.order = append(l.order, name)
	}
	return l
}

// ends ends a stream, a second after the last one.
func (p *past) ends(asked, version string, has ...string) {
	p.t.Helper()
	p.now = p.now.Add(time.Second)
	p.m.remember(p.ledger(asked, version, has...), nil, p.now)
}

// recalls holds what a stream that asks for names is given against what it should be: names,
// with "+" if nothing is missing, and the version.
func (p *past) recalls(asked, want string) {
	p.t.Helper()
	names := strings.Fields(asked)
	f := p.m.recall(p.key, p.asking(names), names, "")
	got := slices.Sorted(maps.Keys(f.items))
	if f.whole && !p.key.splits() && !slices.Equal(slices.Sorted(slices.Values(f.order)), got) {
		p.t.Errorf("%q: the order of %v is %v", asked, got, f.order)
	}
	if f.whole {
		got = append(got, "+")
	}
	if len(f.items) > 0 {
		got = append(got, f.version)
	}
	if text := strings.Join(got, " "); text != want {
		p.t.Errorf("%q: it is given %q, want %q", asked, text, want)
	}
	for _, i := range f.items {
		p.m.stock.release(i)
	}
}

// over ends the test: nothing may be left when all is over.
func (p *past) over() {
	p.t.Helper()
	p.m.expire(p.now.Add(time.Minute))
	if n := p.m.stock.size(); n != 0 || p.m.count != 0 || len(p.m.records) != 0 || p.m.order.Len() != 0 {
		p.t.Errorf("%d resources are left, %d are counted, of %d nodes, in %d parts", n, p.m.count, len(p.m.records), p.m.order.Len())
	}
}

// TestStreamsOfANodeAreRememberedTogether, in whatever order they end, and each is given what
// it asks for.
func TestStreamsOfANodeAreRememberedTogether(t *testing.T) {
	t.Parallel()
	p := newPast(t, false)
	p.ends("a", "1", "a")
	p.ends("b c", "1", "b", "c")
	p.recalls("a", "a + 1")
	p.recalls("c b", "b c + 1")
	p.recalls("a c", "a c + 1")
	p.recalls("a x", "a 1") // x may be there: without it, the answer would remove it
	p.recalls("*", "")
	p.ends("b x", "2", "b") // there is no x
	p.recalls("x b", "b + 2")
	p.recalls("b c", "b c + ") // of two versions
	p.ends("*", "3", "a", "b", "c", "d")
	p.recalls("*", "a b c d + 3")
	p.ends("d", "4", "d")
	p.recalls("*", "a b c d + 3")
	p.recalls("d", "d + 4")
	p.ends("*", "5", "a")
	p.recalls("*", "a + 5")
	p.recalls("d", "d + 4")
	p.over()
}

// TestADeltaStreamThatAsksForAll is given what such streams had: what others asked for by name
// may not be for it.
func TestADeltaStreamThatAsksForAll(t *testing.T) {
	t.Parallel()
	p := newPast(t, true)
	p.ends("a", "", "a")
	p.recalls("*", "")
	p.ends("*", "", "b", "c")
	p.ends("*", "", "c", "d")
	p.ends("c", "", "c")
	p.recalls("*", "b c d + ")
	p.recalls("* a", "a b c d + ")
	p.recalls("c x", "c ")
	if all, _ := p.m.claimed(p.key, &message.Request{Claims: 5}); len(all) != 4 {
		t.Errorf("the node had %d", len(all))
	} else {
		for _, i := range all {
			p.m.stock.release(i)
		}
	}
	p.over()
}

// TestEachStreamIsForgottenByItself once it is over, though others of its node come and go.
func TestEachStreamIsForgottenByItself(t *testing.T) {
	t.Parallel()
	p := newPast(t, false)
	p.ends("a", "1", "a")
	first := p.now
	p.now = p.now.Add(30 * time.Second)
	p.ends("b", "1", "b")
	p.m.expire(first.Add(time.Minute))
	p.recalls("a", "")
	p.recalls("b", "b + 1")
	p.over()
}

// TestMemoryIsBounded, by the streams of a node too: the latest are remembered.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	p := newPast(t, false)
	for i := range maxParts + 1 {
		name := fmt.Sprintf("cluster-%d", i)
		p.ends(name, "1", name)
	}
	if p.m.count != maxParts*(1+partWeight) || p.m.order.Len() != maxParts {
		t.Errorf("%d resources in %d parts", p.m.count, p.m.order.Len())
	}
	p.recalls("cluster-0", "")
	p.recalls("cluster-1", "cluster-1 + 1")
	p.over()
}

// TestManySmallNodesAreFewer than the resources that are remembered of large ones: a node takes memory itself.
func TestManySmallNodesAreFewer(t *testing.T) {
	t.Parallel()
	p := newPast(t, true)
	p.m.most = 1000
	for i := range p.m.most {
		p.key.node = sha256.Sum256(fmt.Append(nil, i))
		p.ends("a", "", "a")
	}
	if n := p.m.order.Len(); n < 10 || n > 100 {
		t.Errorf("of %d nodes with a resource each, %d are remembered", p.m.most, n)
	}
	p.recalls("a", "a + ")
	p.over()
}

// TestNobodyHasOthersForgotten: a caller that brings ever more makes room for it among its own.
func TestNobodyHasOthersForgotten(t *testing.T) {
	t.Parallel()
	p := newPast(t, true)
	p.m.most = 10 + 3*partWeight
	for i := range 30 {
		for caller, names := range map[string]string{"hostile": fmt.Sprintf("a-%d b-%d c-%d", i, i, i), "honest": "d e"} {
			if caller == "honest" && i > 0 {
				continue
			}
			l := p.ledger(names, "1", strings.Fields(names)...)
			l.caller = caller
			p.now = p.now.Add(time.Second)
			p.m.remember(l, nil, p.now)
		}
		if p.m.count > p.m.most {
			t.Fatalf("what is remembered counts as %d resources", p.m.count)
		}
	}
	p.recalls("d e", "d e + 1")
	p.recalls("a-0", "")
	p.recalls("a-29", "a-29 + 1")
	p.over()
	if len(p.m.shares.all) != 0 || len(p.m.shares.most.Items) != 0 {
		t.Errorf("%d callers are left", len(p.m.shares.all))
	}
}

// BenchmarkManyStreamsOfANode: a node that had as many streams as are remembered does not make
// each response, and each stream that begins, cost their number times that of its names.
func BenchmarkManyStreamsOfANode(b *testing.B) {
	for _, parts := range []int{1, maxParts} {
		b.Run(fmt.Sprint(parts), func(b *testing.B) {
			p := newPast(b, false)
			for i := range parts {
				name := fmt.Sprintf("cluster-%d", i)
				p.ends(name, "1", name)
			}
			names := make([]string, 4*maxParts)
			for i := range names {
				names[i] = fmt.Sprintf("other-%d", i)
			}
			l := p.ledger(strings.Join(names, " "), "1", names...)
			o := &offer{}
			for s := range l.held.all() {
				o.brings = append(o.brings, s)
			}
			for b.Loop() {
				p.m.replace(l, o, names)
				p.m.recall(p.key, l.asks, names, "")
			}
		})
	}
}

// TestAnAnswerReplacesWhatWasRemembered: what the control plane gives and what it has no more.
func TestAnAnswerReplacesWhatWasRemembered(t *testing.T) {
	t.Parallel()
	p := newPast(t, false)
	answer := func(asked string, has ...string) {
		t.Helper()
		l := p.ledger(asked, "2", has...)
		o := &offer{}
		for s := range l.held.all() {
			o.brings = append(o.brings, s)
		}
		p.m.replace(l, o, nil)
		for _, all := range o.gone { // it accepts that
			p.m.stock.unhold(all...)
		}
		for s := range l.held.all() {
			p.m.stock.unhold(s)
		}
	}
	p.ends("*", "1", "a", "b", "c")
	p.ends("d e", "1", "d", "e")
	p.ends("f", "1", "f")
	answer("d e", "d") // e is gone
	p.recalls("d", "")
	p.recalls("e", "")
	p.recalls("f", "f + 1")
	p.recalls("*", "a b c + 1")
	answer("*", "a", "f") // b and c are gone
	p.recalls("*", "")
	p.recalls("b", "")
	p.recalls("f", "")
	p.over()
}
