package names

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/rs/zerolog"

	"hdsd/source"
)

// retaining asks for addresses that stay while they are healthy.
var retaining = Question{Host: "web", Family: clusterv3.Cluster_V4_ONLY, Refresh: 2 * time.Second, Retain: true}

// turning is a book about one question, every two seconds.
type turning struct {
	*book
	q         Question
	now       time.Time
	standings map[string]Standing // by address; none: healthy
}

func newTurning(q Question) *turning {
	all := &turning{book: newBook(time.Time{}, nil), q: q, now: time.Unix(1_700_000_000, 0), standings: map[string]Standing{}}
	all.need(all.now, "local", []Question{q})
	return all
}

// take gives the book an answer, and returns what is in use then, in order.
func (b *turning) take(v4, v6 half) string {
	b.now = b.now.Add(b.q.Refresh)
	b.due(b.now, 1)
	standings := map[netip.Addr]Standing{}
	for _, address := range b.missing(b.now, b.q, v4, v6) {
		standings[address] = Healthy
		if standing, ok := b.standings[address.String()]; ok {
			standings[address] = standing
		}
	}
	_, after, _ := b.record(b.now, b.q, v4, v6, standings, 0)
	after.Addresses = slices.SortedFunc(slices.Values(after.Addresses), netip.Addr.Compare)
	return said(after)
}

// says makes DNS give IPv4 addresses.
func (b *turning) says(all ...string) string {
	return b.take(half{addresses: addresses(all...), noneReason: map[bool]string{true: "gone"}[len(all) == 0]}, half{})
}

// TestAddressesInTurn stay while they are healthy. A dead one leaves as soon as DNS gives another.
func TestAddressesInTurn(t *testing.T) {
	b := newTurning(retaining)
	b.standings["10.0.0.3"] = Down
	for i, one := range []struct {
		says, want string
		ignoreNew  bool
	}{
		{"10.0.0.1", "10.0.0.1", false},
		{"10.0.0.2", "10.0.0.1 10.0.0.2", true},
		{"10.0.0.3", "10.0.0.1 10.0.0.2 10.0.0.3", true},
		{"10.0.0.4", "10.0.0.1 10.0.0.2 10.0.0.4", true},
		{"10.0.0.5", "10.0.0.1 10.0.0.2 10.0.0.4 10.0.0.5", true},
		{"10.0.0.1", "10.0.0.1 10.0.0.2 10.0.0.4 10.0.0.5", true},
		{"10.0.0.2", "10.0.0.1 10.0.0.2 10.0.0.4 10.0.0.5", true},
		{"10.0.0.3", "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5", true},
		{"10.0.0.4 10.0.0.1 10.0.0.2 10.0.0.5", "10.0.0.1 10.0.0.2 10.0.0.4 10.0.0.5", false},
	} {
		serial := b.serial
		before := b.answer(b.q)
		equal(t, fmt.Sprintf("turn %d", i), b.says(strings.Fields(one.says)...), one.want)
		equal(t, fmt.Sprintf("turn %d: new ones wait", i), b.answer(b.q).IgnoreNew, one.ignoreNew)
		equal(t, fmt.Sprintf("turn %d: a change", i), b.serial != serial, !before.equal(b.answer(b.q)))
	}
}

// TestWhatStays beyond an answer, and for how long.
func TestWhatStays(t *testing.T) {
	ignoring, logical := retaining, retaining
	ignoring.Retain = false
	logical.Retain, logical.Keep = false, true
	for name, play := range map[string]struct {
		q    Question
		play func(t *testing.T, b *turning)
	}{
		"ignore_health_on_host_removal": {ignoring, func(t *testing.T, b *turning) {
			b.says("10.0.0.1")
			equal(t, "at once", b.says("10.0.0.2"), "10.0.0.2")
		}},
		"LOGICAL_DNS": {logical, func(t *testing.T, b *turning) {
			b.says("10.0.0.1")
			equal(t, "at once", b.says("10.0.0.2"), "10.0.0.2")
		}},
		"no verdict": {retaining, func(t *testing.T, b *turning) {
			b.standings["10.0.0.1"] = Unjudged
			b.says("10.0.0.1")
			for range int(unjudgedFor / b.q.Refresh) {
				equal(t, "for a while", b.says("10.0.0.2"), "10.0.0.1 10.0.0.2")
				equal(t, "new ones wait", b.answer(b.q).IgnoreNew, false)
			}
			equal(t, "then", b.says("10.0.0.2"), "10.0.0.2")
		}},
		"healthy, then nobody checks it": {retaining, func(t *testing.T, b *turning) {
			b.says("10.0.0.1")
			for range 100 {
				equal(t, "healthy", b.says("10.0.0.2"), "10.0.0.1 10.0.0.2")
			}
			b.standings["10.0.0.1"] = Unjudged
			for range int(unjudgedFor/b.q.Refresh) - 1 {
				equal(t, "for a while", b.says("10.0.0.2"), "10.0.0.1 10.0.0.2")
			}
			equal(t, "then", b.says("10.0.0.2"), "10.0.0.2")
		}},
		"healthy, then down": {retaining, func(t *testing.T, b *turning) {
			b.says("10.0.0.1")
			b.says("10.0.0.2")
			b.standings["10.0.0.1"] = Down
			equal(t, "at the next refresh", b.says("10.0.0.2"), "10.0.0.2")
		}},
		"a failure": {retaining, func(t *testing.T, b *turning) {
			b.says("10.0.0.1")
			b.says("10.0.0.2")
			b.standings["10.0.0.1"] = Down
			equal(t, "tells nothing", b.take(half{failure: "broken"}, half{}), "10.0.0.1 10.0.0.2, but: broken")
			equal(t, "over", b.says("10.0.0.2"), "10.0.0.2")
		}},
		"no addresses for long": {retaining, func(t *testing.T, b *turning) {
			b.says("10.0.0.1", "10.0.0.2")
			b.standings["10.0.0.1"] = Down
			for range int(lasting / b.q.Refresh) {
				equal(t, "for a while", b.says(), "10.0.0.1 10.0.0.2, but: gone")
			}
			equal(t, "then", b.says(), "10.0.0.2, but: gone")
			b.standings["10.0.0.2"] = Down
			equal(t, "all down", b.says(), ", but: gone")
		}},
		"a kind that cannot be had": {Question{Host: "web", Family: clusterv3.Cluster_ALL, Refresh: time.Second, Retain: true}, func(t *testing.T, b *turning) {
			four := half{addresses: addresses("10.0.0.1")}
			b.take(four, half{addresses: addresses("::1")})
			equal(t, "keeps what it had", b.take(half{addresses: addresses("10.0.0.2")}, half{failure: "broken"}), "10.0.0.1 ::1, but: broken")
			equal(t, "healthy", b.take(four, half{noneReason: "none"}), "10.0.0.1 ::1")
			equal(t, "no failure if the last answer had none", b.take(four, half{failure: "broken"}), "10.0.0.1 ::1")
			b.standings["::1"] = Down
			equal(t, "down", b.take(four, half{failure: "broken"}), "10.0.0.1")
		}},
		"many": {retaining, func(t *testing.T, b *turning) {
			var last string
			for i := range maxRetained + 5 {
				last = b.says(fmt.Sprintf("10.0.1.%d", i))
			}
			all := strings.Fields(last)
			equal(t, "number", len(all), maxRetained+1)
			equal(t, "the oldest leave first", all[0], "10.0.1.4")
		}},
	} {
		t.Run(name, func(t *testing.T) { play.play(t, newTurning(play.q)) })
	}
}

// TestWhichClustersRetain: those with an address for each record, and not where they say otherwise.
func TestWhichClustersRetain(t *testing.T) {
	web := cluster(t, "web", strictText)
	ignoring := cluster(t, "ignoring", "ignore_health_on_host_removal: true "+strictText)
	logical := cluster(t, "logical", `type: LOGICAL_DNS load_assignment {endpoints {lb_endpoints {endpoint {address {socket_address {address: "web.test" port_value: 80}}}}}}`)
	all, clusters := Questions(setOf(web, cluster(t, "twin", strictText), ignoring, logical))
	for i, want := range []string{"true: web twin", "false: ignoring", "false: logical"} {
		equal(t, "retains", fmt.Sprintf("%v: %s", all[i].Retain, strings.Join(clusters[all[i]], " ")), want)
	}
	equal(t, "questions", len(all), 3)
}

// TestNewAddressesWait where others of any name of the cluster are healthy.
func TestNewAddressesWait(t *testing.T) {
	from := cluster(t, "web", `type: STRICT_DNS load_assignment {endpoints {
		lb_endpoints {endpoint {address {socket_address {address: "a.test" port_value: 80}}}}
		lb_endpoints {endpoint {address {socket_address {address: "b.test" port_value: 80}}}}}}`)
	known := answers{"a.test": {Addresses: addresses("10.0.0.1"), Known: true}, "b.test": {Addresses: addresses("10.0.0.2"), Known: true}}
	r := &Rewriter{}
	take := func() *source.Cluster { return r.Apply(setOf(from), known.of).Clusters[0] }
	before := take()
	equal(t, "before", before.IgnoreNew, false)
	known["b.test"] = Answer{Addresses: addresses("10.0.0.2"), Known: true, IgnoreNew: true}
	after := take()
	equal(t, "after", after.IgnoreNew, true)
	equal(t, "the same", take(), after)
}

// TestRetainedAddressesSurviveARestart: the first answer after it finds them in use.
func TestRetainedAddressesSurviveARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "names.json")
	b, other := newTurning(retaining), retaining
	other.Retain, other.Refresh = false, b.q.Refresh
	for i := range maxRetained + 1 {
		b.says(fmt.Sprintf("10.0.1.%d", i))
	}
	b.need(b.now, "other", []Question{other})
	for _, q := range b.due(b.now, 10) {
		b.record(b.now, q, half{addresses: addresses("10.0.1.1")}, half{}, nil, 0)
	}
	if err := writeKept(file, b.good(b.now)); err != nil {
		t.Fatal(err)
	}
	kept, err := readKept(file)
	if err != nil {
		t.Fatal(err)
	}
	again := newTurning(retaining)
	again.book = newBook(again.now, kept)
	again.need(again.now, "local", []Question{again.q})
	again.standings["10.0.1.7"] = Down
	equal(t, "healthy ones", len(strings.Fields(again.says("10.0.1.1"))), maxRetained)
}

// TestNamesThatRotateAreTold, each once, and not all at once.
func TestNamesThatRotateAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f, start := &fake{start: time.Now()}, time.Now()
		standings := func(_ context.Context, _ Question, all []netip.Addr) map[netip.Addr]Standing {
			found := map[netip.Addr]Standing{}
			for _, address := range all {
				found[address] = Healthy
			}
			return found
		}
		var told []string
		r := New(Options{Log: zerolog.New(&log).Hook(zerolog.HookFunc(func(*zerolog.Event, zerolog.Level, string) {
			told = append(told, time.Since(start).Round(time.Second).String()) // lookups keep some milliseconds apart
		})), Standings: standings})
		r.lookup = f.lookup
		all := run(t, r)
		defer all.stop()
		other, still := retaining, retaining
		other.Host, still.Host, still.Retain = "other", "still", false
		f.says(half{addresses: addresses("10.0.0.1")})
		r.Need("local", []Question{retaining, other, still})
		time.Sleep(time.Second) // between two lookups
		for i := range 8 {
			time.Sleep(retaining.Refresh)
			f.says(half{addresses: addresses(fmt.Sprintf("10.0.0.%d", 1+(i+1)%2))})
		}
		synctest.Wait()
		all.stop()
		equal(t, "when", strings.Join(told, " "), "6s 8s")
		equal(t, "events", strings.Count(log.String(), `"event":"name_rotates"`), 2)
		equal(t, "of web", strings.Count(log.String(), `"name":"web","addresses":2,"beyond":1`), 1)
		equal(t, "of other", strings.Count(log.String(), `"name":"other","addresses":2,"beyond":1`), 1)
	})
}
