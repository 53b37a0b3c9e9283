package names

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/miekg/dns"
)

// TestAnswersOfARealServer are followed, and held while it fails.
func TestAnswersOfARealServer(t *testing.T) {
	s := newServer(t)
	s.has("web.test", "10.0.0.1", "2001:db8::1")
	r := New(Options{})
	r.lookup = clientOf(t, s.address).lookup
	all := run(t, r)
	q := question("web.test")
	r.Need("local", []Question{q})
	all.until(q, "10.0.0.1 2001:db8::1")
	s.has("web.test", "10.0.0.2")
	all.until(q, "10.0.0.2")
	s.does(rcode(dns.RcodeServerFailure))
	all.until(q, "10.0.0.2, but: "+s.address+": it answers SERVFAIL")
	s.does(rcode(dns.RcodeNameError))
	all.until(q, "10.0.0.2, but: there is no such name (NXDOMAIN)")
	s.does(silent)
	all.until(q, "10.0.0.2, but: "+s.address+": no answer in time")
	s.has("web.test", "10.0.0.3", "10.0.0.2")
	s.does(nil)
	all.until(q, "10.0.0.2 10.0.0.3")
	stats := r.Stats()
	if stats.Names != 1 || stats.Failing != 0 || stats.Lookups < 6 || stats.Failures < 3 {
		t.Errorf("counted: %+v", stats)
	}
	r.Need("local", nil)
	equal(t, "names", r.Stats().Names, 0)
}

// TestARestartKnowsTheLastAnswers although nobody answers.
func TestARestartKnowsTheLastAnswers(t *testing.T) {
	s := newServer(t)
	s.has("web.test", "10.0.0.1")
	file := filepath.Join(t.TempDir(), "names.json")
	q := question("web.test")
	first := New(Options{File: file})
	first.lookup = clientOf(t, s.address).lookup
	all := run(t, first)
	first.Need("local", []Question{q})
	all.until(q, "10.0.0.1")
	all.stop()

	second := New(Options{File: file})
	second.Need("local", []Question{q, question("new.test")})
	equal(t, "before anything is asked", said(second.Answer(q)), "10.0.0.1")
	equal(t, "a new name", said(second.Answer(question("new.test"))), "unknown")
	slower := question("web.test", func(q *Question) { q.Refresh = time.Minute })
	second.Need("local", []Question{slower})
	equal(t, "in other words", said(second.Answer(slower)), "10.0.0.1")
}

// TestARestartKnowsTheNamesOfASilentSource: over several restarts in which only another source
// answers, but not for ever.
func TestARestartKnowsTheNamesOfASilentSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, file := &fake{start: time.Now()}, filepath.Join(t.TempDir(), "names.json")
		f.says(half{addresses: addresses("10.0.0.1")})
		seldom := func(q *Question) { q.Refresh = 20 * time.Second }
		web, api := question("web.test", seldom), question("api.test", seldom)
		live := func(d time.Duration, needed ...string) (knows string) {
			r := New(Options{File: file})
			r.lookup = f.lookup
			for _, source := range needed {
				r.Need(source, map[string][]Question{"slow": {web}, "quick": {api}}[source])
			}
			knows = said(r.Answer(web)) // before the first lookup
			all := run(t, r)
			defer all.stop()
			time.Sleep(d)
			synctest.Wait()
			return knows
		}
		live(time.Minute, "slow", "quick")
		for i := range 3 {
			f.says(half{addresses: addresses(fmt.Sprint("10.0.1.", i))}) // so that the file is written
			live(time.Minute, "quick")
		}
		equal(t, "after restarts without its source", live(time.Minute, "slow", "quick"), "10.0.0.1")
		f.says(half{addresses: addresses("10.0.2.1")})
		live(time.Minute, "quick")
		f.says(half{addresses: addresses("10.0.3.1")})
		r := New(Options{File: file})
		r.lookup = f.lookup
		all := run(t, r)
		r.Need("quick", []Question{api})
		time.Sleep(24*time.Hour + time.Minute)
		f.says(half{addresses: addresses("10.0.4.1")})
		time.Sleep(time.Minute)
		all.stop()
		equal(t, "a day later", live(0, "slow"), "unknown")
	})
}

// fake answers lookups as a test says.
type fake struct {
	mu      sync.Mutex
	v4      half
	asked   []time.Duration // since the start
	start   time.Time
	blocked bool
}

func (f *fake) lookup(ctx context.Context, _ Question) (v4, v6 half) {
	f.mu.Lock()
	f.asked = append(f.asked, time.Since(f.start).Round(time.Second))
	blocked, v4 := f.blocked, f.v4
	f.mu.Unlock()
	if blocked {
		<-ctx.Done()
	}
	return v4, v6
}

func (f *fake) says(v4 half) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.v4, f.asked, f.start = v4, nil, time.Now()
}

// block makes lookups hang until they are given up.
func (f *fake) block() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blocked = true
}

func (f *fake) times() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, at := range f.asked {
		all = append(all, at.String())
	}
	return strings.Join(all, " ")
}

func addresses(all ...string) (out []netip.Addr) {
	for _, text := range all {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

// inTime runs a test with a Resolver that asks a fake, in time of its own.
func inTime(t *testing.T, test func(t *testing.T, f *fake, r *Resolver)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{start: time.Now()}
		r := New(Options{})
		r.lookup = f.lookup
		all := run(t, r)
		defer all.stop()
		test(t, f, r)
	})
}

// TestWhenNamesAreAsked: by the cluster's rate, the answer's TTL, or ever less often.
func TestWhenNamesAreAsked(t *testing.T) {
	answer := half{addresses: addresses("10.0.0.1"), ttl: 7 * time.Second}
	for name, one := range map[string]struct {
		q    Question
		says half
		want string // in the first 21 seconds
	}{
		"dns_refresh_rate":              {Question{Refresh: 5 * time.Second}, answer, "0s 5s 10s 15s 20s"},
		"respect_dns_ttl":               {Question{Refresh: 5 * time.Second, RespectTTL: true}, answer, "0s 7s 14s 21s"},
		"a short TTL":                   {Question{Refresh: 5 * time.Second, RespectTTL: true, LeastTTL: 9 * time.Second}, answer, "0s 9s 18s"},
		"a TTL of 0":                    {Question{Refresh: 5 * time.Second, RespectTTL: true}, half{addresses: answer.addresses}, "0s 5s 10s 15s 20s"},
		"failures without a rate":       {Question{Refresh: 10 * time.Second}, half{failure: "x"}, "0s 10s 20s"},
		"a name that has none":          {Question{Refresh: 10 * time.Second, FailureBase: time.Second, FailureMax: time.Second}, half{noneReason: "x"}, "0s 10s 20s"},
		"an answer after many failures": {Question{Refresh: 10 * time.Second, FailureBase: time.Second, FailureMax: time.Minute}, answer, "0s 10s 20s"},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, f *fake, r *Resolver) {
				f.says(one.says)
				r.Need("local", []Question{one.q})
				time.Sleep(21*time.Second + 300*time.Millisecond)
				synctest.Wait()
				equal(t, "asked", f.times(), one.want)
			})
		})
	}
}

// TestFailuresAreAskedLessOften: twice as long each time, with jitter.
func TestFailuresAreAskedLessOften(t *testing.T) {
	q := Question{Refresh: time.Hour, FailureBase: time.Second, FailureMax: 8 * time.Second}
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 8 * time.Second, 100: 8 * time.Second} {
		low, high := q.wait(outcome{failure: "x"}, failures, 1), q.wait(outcome{failure: "x"}, failures, 0)
		if high != want || low != want/2 {
			t.Errorf("after %d failures it waits from %s to %s, want up to %s", failures, low, high, want)
		}
	}
	jittered := Question{Refresh: time.Second, Jitter: time.Second}
	equal(t, "with dns_jitter", jittered.wait(outcome{addresses: addresses("10.0.0.1")}, 0, 0.5), 1500*time.Millisecond)
	fast := Question{Refresh: time.Nanosecond}
	equal(t, "at least", fast.wait(outcome{}, 0, 0), leastWait)
}

// TestANameThatHasNoAddressesForLong: those of a STRICT_DNS cluster are taken away.
func TestANameThatHasNoAddressesForLong(t *testing.T) {
	inTime(t, func(t *testing.T, f *fake, r *Resolver) {
		strict, logical := Question{Host: "web", Refresh: time.Second}, Question{Host: "web", Refresh: time.Second, Keep: true}
		f.says(half{addresses: addresses("10.0.0.1")})
		r.Need("local", []Question{strict, logical})
		time.Sleep(time.Second)
		f.says(half{noneReason: "gone"})
		time.Sleep(lasting - 2*time.Second)
		equal(t, "not for long", said(r.Answer(strict)), "10.0.0.1, but: gone")
		time.Sleep(5 * time.Second)
		equal(t, "for long", said(r.Answer(strict)), ", but: gone")
		equal(t, "LOGICAL_DNS", said(r.Answer(logical)), "10.0.0.1, but: gone")
		f.says(half{failure: "broken"})
		time.Sleep(time.Hour)
		equal(t, "a failure says nothing", said(r.Answer(logical)), "10.0.0.1, but: broken")
	})
}

// TestTheWaitForAFirstAnswerEnds although lookups hang, and no more than so many are on
// their way.
func TestTheWaitForAFirstAnswerEnds(t *testing.T) {
	inTime(t, func(t *testing.T, f *fake, r *Resolver) {
		f.block()
		var all []Question
		for i := range 2 * maxInFlight {
			all = append(all, Question{Host: "web", Refresh: time.Duration(i+1) * time.Second})
		}
		r.Need("local", all)
		time.Sleep(patience - time.Second)
		equal(t, "before", said(r.Answer(all[0])), "unknown")
		time.Sleep(2 * time.Second)
		equal(t, "after", said(r.Answer(all[0])), ", but: there is no answer yet")
		equal(t, "lookups", len(strings.Fields(f.times())), maxInFlight)
	})
}

// TestTooManyNames leave out the last ones, and say so.
func TestTooManyNames(t *testing.T) {
	r := New(Options{})
	var all []Question
	for i := range maxNames + 1 {
		all = append(all, Question{Host: "web", Refresh: time.Duration(i+1) * time.Second})
	}
	r.Need("local", all)
	equal(t, "names", r.Stats().Names, maxNames)
	equal(t, "the last one", said(r.Answer(all[maxNames])), ", but: hdsd resolves so many names that there is no room for this one")
	r.Need("local", all[:1])
	r.Need("other", all[1:3])
	equal(t, "names", r.Stats().Names, 3)
}

// TestCombine: a half that failed takes nothing away that it may have given.
func TestCombine(t *testing.T) {
	four, six := half{addresses: addresses("10.0.0.1"), ttl: 2 * time.Second}, half{addresses: addresses("::6"), ttl: time.Second}
	none, failed := half{noneReason: "none"}, half{failure: "failed"}
	for _, one := range []struct {
		family clusterv3.Cluster_DnsLookupFamily
		inUse  string
		v4, v6 half
		want   string
	}{
		{clusterv3.Cluster_AUTO, "10.0.0.1", four, failed, "10.0.0.1"},
		{clusterv3.Cluster_AUTO, "::6", four, failed, ", but: failed"},
		{clusterv3.Cluster_AUTO, "10.0.0.1", none, failed, ", but: failed"},
		{clusterv3.Cluster_AUTO, "10.0.0.1", failed, none, ", but: failed"},
		{clusterv3.Cluster_AUTO, "10.0.0.1", failed, six, "::6"},
		{clusterv3.Cluster_V4_PREFERRED, "10.0.0.1", failed, six, ", but: failed"},
		{clusterv3.Cluster_V4_PREFERRED, "::6", failed, six, "::6"},
		{clusterv3.Cluster_ALL, "10.0.0.1", four, failed, "10.0.0.1"},
		{clusterv3.Cluster_ALL, "::6", four, failed, ", but: failed"},
		{clusterv3.Cluster_ALL, "::6", failed, six, "::6"},
		{clusterv3.Cluster_ALL, "10.0.0.1", none, failed, ", but: failed"},
		{clusterv3.Cluster_ALL, "10.0.0.1", none, none, ", but: none"},
		{clusterv3.Cluster_ALL, "10.0.0.1", four, six, "10.0.0.1 ::6"},
	} {
		o := combine(one.family, addresses(one.inUse), one.v4, one.v6)
		if got := said(Answer{Addresses: o.addresses, Known: true, Problem: o.noneReason + o.failure}); got != one.want {
			t.Errorf("%s, %s in use, %v and %v: got %q, want %q", one.family, one.inUse, one.v4, one.v6, got, one.want)
		}
	}
	equal(t, "the smaller TTL", combine(clusterv3.Cluster_ALL, nil, four, six).ttl, time.Second)
}
