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

// scope is the scope of a stream that asks for names; "*": for all there is.
func (p *past) scope(names []string) scope {
	asks := scope{wildcard: slices.Contains(names, "*")}
	if !p.key.delta {
		asks.names = hashNames(names)
	}
	return asks
}

// ledger is that of a stream that asks for names and has clusters.
func (p *past) ledger(asked, version string, names ...string) *ledger {
	p.t.Helper()
	l := newLedger(p.key.kind, p.key.delta, p.key.node, p.m, "", nil)
	l.scope, l.version = p.scope(strings.Fields(asked)), version
	for _, name := range names {
		packed, err := anypb.New(&clusterv3.Cluster{Name: name, AltStatName: version})
		if err != nil {
			p.t.Fatal(err)
		}
		wire, err := proto.Marshal(packed)
		if err != nil {
			p.t.Fatal(err)
		}
		i, _, err := p.m.stock.acquire(clusters, false, wire)
		if err != nil {
			p.t.Fatal(err)
		}
		l.holdings.put(i.delivery(0))
		l.order = append(l.order, name)
	}
	return l
}

// end ends a stream, a second after the last one.
func (p *past) end(asked, version string, names ...string) {
	p.t.Helper()
	p.now = p.now.Add(time.Second)
	p.m.remember(p.ledger(asked, version, names...), nil, p.now)
}

// wantRecall holds what a stream that asks for names is given against what it should be: names,
// with "+" if nothing is missing, and the version.
func (p *past) wantRecall(asked, want string) {
	p.t.Helper()
	names := strings.Fields(asked)
	f := p.m.recall(p.key, p.scope(names), names, "")
	got := slices.Sorted(maps.Keys(f.items))
	if f.complete && !p.key.splits() && !slices.Equal(slices.Sorted(slices.Values(f.order)), got) {
		p.t.Errorf("%q: the order of %v is %v", asked, got, f.order)
	}
	if f.complete {
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

// wantEmpty ends the test: nothing may be left when all is over.
func (p *past) wantEmpty() {
	p.t.Helper()
	p.m.expire(p.now.Add(time.Minute))
	if n := p.m.stock.size(); n != 0 || p.m.size != 0 || len(p.m.records) != 0 || p.m.byExpiry.Len() != 0 {
		p.t.Errorf("%d resources are left, %d are counted, of %d nodes, in %d parts", n, p.m.size, len(p.m.records), p.m.byExpiry.Len())
	}
}

// TestStreamsOfANodeAreRememberedTogether, in whatever order they end, and each is given what
// it asks for.
func TestStreamsOfANodeAreRememberedTogether(t *testing.T) {
	t.Parallel()
	p := newPast(t, false)
	p.end("a", "1", "a")
	p.end("b c", "1", "b", "c")
	p.wantRecall("a", "a + 1")
	p.wantRecall("c b", "b c + 1")
	p.wantRecall("a c", "a c + 1")
	p.wantRecall("a x", "a 1") // x may be there: without it, the answer would remove it
	p.wantRecall("*", "")
	p.end("b x", "2", "b") // there is no x
	p.wantRecall("x b", "b + 2")
	p.wantRecall("b c", "b c + ") // of two versions
	p.end("*", "3", "a", "b", "c", "d")
	p.wantRecall("*", "a b c d + 3")
	p.end("d", "4", "d")
	p.wantRecall("*", "a b c d + 3")
	p.wantRecall("d", "d + 4")
	p.end("*", "5", "a")
	p.wantRecall("*", "a + 5")
	p.wantRecall("d", "d + 4")
	p.wantEmpty()
}

// TestADeltaStreamThatAsksForAll is given what such streams had: what others asked for by name
// may not be for it.
func TestADeltaStreamThatAsksForAll(t *testing.T) {
	t.Parallel()
	p := newPast(t, true)
	p.end("a", "", "a")
	p.wantRecall("*", "")
	p.end("*", "", "b", "c")
	p.end("*", "", "c", "d")
	p.end("c", "", "c")
	p.wantRecall("*", "b c d + ")
	p.wantRecall("* a", "a b c d + ")
	p.wantRecall("c x", "c ")
	if items, _ := p.m.claimed(p.key, &message.Request{Claims: 5}); len(items) != 4 {
		t.Errorf("the node had %d", len(items))
	} else {
		for _, i := range items {
			p.m.stock.release(i)
		}
	}
	p.wantEmpty()
}

// TestEachStreamIsForgottenByItself once it is over, though others of its node come and go.
func TestEachStreamIsForgottenByItself(t *testing.T) {
	t.Parallel()
	p := newPast(t, false)
	p.end("a", "1", "a")
	first := p.now
	p.now = p.now.Add(30 * time.Second)
	p.end("b", "1", "b")
	p.m.expire(first.Add(time.Minute))
	p.wantRecall("a", "")
	p.wantRecall("b", "b + 1")
	p.wantEmpty()
}

// TestMemoryIsBounded, by the streams of a node too: the latest are remembered.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	p := newPast(t, false)
	for i := range maxParts + 1 {
		name := fmt.Sprintf("cluster-%d", i)
		p.end(name, "1", name)
	}
	if p.m.size != maxParts*(1+partWeight) || p.m.byExpiry.Len() != maxParts {
		t.Errorf("%d resources in %d parts", p.m.size, p.m.byExpiry.Len())
	}
	p.wantRecall("cluster-0", "")
	p.wantRecall("cluster-1", "cluster-1 + 1")
	p.wantEmpty()
}

// TestManySmallNodesAreFewer than the resources that are remembered of large ones: a node takes memory itself.
func TestManySmallNodesAreFewer(t *testing.T) {
	t.Parallel()
	p := newPast(t, true)
	p.m.limit = 1000
	for i := range p.m.limit {
		p.key.node = sha256.Sum256(fmt.Append(nil, i))
		p.end("a", "", "a")
	}
	if n := p.m.byExpiry.Len(); n < 10 || n > 100 {
		t.Errorf("of %d nodes with a resource each, %d are remembered", p.m.limit, n)
	}
	p.wantRecall("a", "a + ")
	p.wantEmpty()
}

// TestNobodyHasOthersForgotten: a caller that brings ever more makes room for it among its own.
func TestNobodyHasOthersForgotten(t *testing.T) {
	t.Parallel()
	p := newPast(t, true)
	p.m.limit = 10 + 3*partWeight
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
		if p.m.size > p.m.limit {
			t.Fatalf("what is remembered counts as %d resources", p.m.size)
		}
	}
	p.wantRecall("d e", "d e + 1")
	p.wantRecall("a-0", "")
	p.wantRecall("a-29", "a-29 + 1")
	p.wantEmpty()
	if len(p.m.shares.byCaller) != 0 || len(p.m.shares.largest.Items) != 0 {
		t.Errorf("%d callers are left", len(p.m.shares.byCaller))
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
				p.end(name, "1", name)
			}
			names := make([]string, 4*maxParts)
			for i := range names {
				names[i] = fmt.Sprintf("other-%d", i)
			}
			l := p.ledger(strings.Join(names, " "), "1", names...)
			o := &offer{}
			for s := range l.holdings.all() {
				o.resources = append(o.resources, s)
			}
			for b.Loop() {
				p.m.replace(l, o, names)
				p.m.recall(p.key, l.scope, names, "")
			}
		})
	}
}

// TestAnAnswerReplacesWhatWasRemembered: what the control plane gives and what it has no more.
func TestAnAnswerReplacesWhatWasRemembered(t *testing.T) {
	t.Parallel()
	p := newPast(t, false)
	answer := func(asked string, names ...string) {
		t.Helper()
		l := p.ledger(asked, "2", names...)
		o := &offer{}
		for s := range l.holdings.all() {
			o.resources = append(o.resources, s)
		}
		p.m.replace(l, o, nil)
		for _, deliveries := range o.removed { // it accepts that
			p.m.stock.releaseDeliveries(deliveries...)
		}
		for s := range l.holdings.all() {
			p.m.stock.releaseDeliveries(s)
		}
	}
	p.end("*", "1", "a", "b", "c")
	p.end("d e", "1", "d", "e")
	p.end("f", "1", "f")
	answer("d e", "d") // e is gone
	p.wantRecall("d", "")
	p.wantRecall("e", "")
	p.wantRecall("f", "f + 1")
	p.wantRecall("*", "a b c + 1")
	answer("*", "a", "f") // b and c are gone
	p.wantRecall("*", "")
	p.wantRecall("b", "")
	p.wantRecall("f", "")
	p.wantEmpty()
}
