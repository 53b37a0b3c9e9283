package replicas

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/test/envoy"
	"hdsd/test/etcd"
	"hdsd/test/scale"
)

// lab is three replicas, and all around them.
type lab struct {
	t         *testing.T
	etcd      []*etcd.Server
	replicas  []*process
	planes    []*plane
	checkers  []*checker
	operators []*operator
	judge     *judge
	changing  sync.RWMutex // held for reading by changes of endpoints
	ordering  sync.RWMutex // held for reading by orders
	ctx       context.Context
	tasks     sync.WaitGroup
}

// shortTTL is the session_ttl of most tests.
const shortTTL = "1s"

// quickEtcd are flags with which etcd allows a session of a second.
var quickEtcd = []string{"--heartbeat-interval", "50", "--election-timeout", "500", "--unsafe-no-fsync"}

func soak() bool { return os.Getenv("SOAK") != "" }

// either returns the first value, or with SOAK the second.
func either[T any](usual, long T) T {
	if soak() {
		return long
	}
	return usual
}

// prepare prepares three replicas on an etcd, of which nothing runs.
func prepare(t *testing.T, servers []*etcd.Server, ttl string) *lab {
	world := scale.NewWorld(clusters, clusterSize)
	l := &lab{t: t, etcd: servers, judge: newJudge(t, world)}
	var urls []string
	for _, s := range servers {
		urls = append(urls, fmt.Sprintf("%q", s.URL))
	}
	for i := range 3 {
		l.replicas = append(l.replicas, newProcess(t, fmt.Sprintf("hdsd-%d", i+1), strings.Join(urls, ", "), ttl, world.File()))
	}
	return l
}

// join adds a data plane of a replica.
func (l *lab) join(r *process) {
	p := &plane{replica: r.id, server: r.grpc, judge: l.judge, latest: map[int]corev3.HealthStatus{}}
	l.planes = append(l.planes, p)
	l.tasks.Go(func() { p.run(l.ctx) })
}

// surround connects checkers and data planes, until the test ends.
func (l *lab) surround() {
	ctx, cancel := context.WithCancel(context.Background())
	l.ctx = ctx
	l.t.Cleanup(func() { cancel(); l.tasks.Wait() })
	for i, r := range l.replicas {
		l.join(r)
		for k := range 2 {
			c := &checker{id: fmt.Sprintf("checker-%d-%d", i+1, k+1), zone: string(rune('a' + i)), world: l.judge.world, changed: make(chan struct{}, 1)}
			for n := range l.replicas {
				c.servers = append(c.servers, l.replicas[(i+n)%3].hds)
			}
			l.checkers = append(l.checkers, c)
			l.tasks.Go(func() { c.run(ctx, func(err error) { l.t.Error(err) }) })
		}
	}
}

// newLab starts three replicas, waits for the health of all endpoints, and begins to change endpoints and to give
// orders.
func newLab(t *testing.T, servers []*etcd.Server, ttl string) *lab {
	t.Helper()
	l := prepare(t, servers, ttl)
	l.open()
	l.operate()
	return l
}

// open starts the replicas that do not run, waits for the health of all endpoints, and begins to change endpoints.
func (l *lab) open() {
	l.t.Helper()
	for _, r := range l.replicas {
		if r.Child == nil {
			r.launch()
		}
	}
	for _, r := range l.replicas {
		r.ready()
	}
	l.surround()
	l.settle()
	l.begin()
}

// operate begins to give orders.
func (l *lab) operate() {
	for i, r := range l.replicas {
		o := newOperator(l.t, r, l.judge, i, len(l.replicas))
		l.operators = append(l.operators, o)
		l.tasks.Go(func() { o.work(l.ctx, &l.ordering) })
	}
}

// begin begins to change endpoints.
func (l *lab) begin() {
	seed := uint64(time.Now().UnixNano())
	l.tasks.Go(func() {
		l.judge.drive(l.ctx, &l.changing, 20*time.Millisecond, seed, func() {
			for _, c := range l.checkers {
				c.wake()
			}
		})
	})
	time.Sleep(500 * time.Millisecond) // of changes
}

// settle waits until all replicas publish how the endpoints are, while nothing changes. It returns the longest wait
// for a decision since the fault began.
func (l *lab) settle() time.Duration {
	l.t.Helper()
	l.changing.Lock()
	defer l.changing.Unlock()
	return l.settleStill()
}

func (l *lab) settleStill() time.Duration {
	l.t.Helper()
	var wrong string
	if !envoy.Await(patience, func() bool {
		wrong = ""
		for _, p := range l.planes {
			if wrong = l.judge.wrong(p); wrong != "" {
				break
			}
		}
		return wrong == ""
	}) {
		l.t.Fatalf("waited %v in vain until all replicas publish the truth: %s", patience, wrong)
	}
	for _, p := range l.planes {
		p.setBehind(false)
	}
	return l.judge.end()
}

// leader waits for a leader.
func (l *lab) leader() *process {
	l.t.Helper()
	var found *process
	envoy.Eventually(l.t, patience, "a leader", func() bool {
		for _, r := range l.replicas {
			if r.Alive() && r.leads() {
				found = r
				return true
			}
		}
		return false
	})
	return found
}

// follower returns a replica that does not lead.
func (l *lab) follower() *process {
	l.t.Helper()
	return l.replicas[(slices.Index(l.replicas, l.leader())+1)%3]
}

// behind notes that a replica may have to catch up.
func (l *lab) behind(r *process) { l.planes[slices.Index(l.replicas, r)].setBehind(true) }

// fault breaks something, repairs it, and checks that all resumes.
func (l *lab) fault(name string, breaking, repair func()) {
	l.t.Helper()
	l.judge.begin()
	begin := time.Now()
	breaking()
	time.Sleep(either(300*time.Millisecond, time.Second)) // of changes during the fault
	repair()
	repaired := time.Now()
	time.Sleep(300 * time.Millisecond) // of changes after it
	longest := l.settle()
	l.t.Logf("%-41s lasted %5.1f s, all as it should be %4.1f s later; the longest wait for a decision %6.0f ms", name, repaired.Sub(begin).Seconds(),
		time.Since(repaired).Seconds(), longest.Seconds()*1000)
	for _, c := range l.checkers {
		c.goHome()
	}
	if l.t.Failed() {
		l.t.FailNow()
	}
}

// still does something while nothing changes, and for a moment after it: checkers of a replica that was paused report
// what they found meanwhile, which no decision of now should need.
func (l *lab) still(do func()) {
	l.changing.Lock()
	defer l.changing.Unlock()
	do()
	time.Sleep(500 * time.Millisecond)
}

// finish checks what the replicas have recorded, while nothing changes.
func (l *lab) finish() {
	l.t.Helper()
	l.changing.Lock()
	defer l.changing.Unlock()
	l.ordering.Lock()
	defer l.ordering.Unlock()
	l.settleStill()
	time.Sleep(500 * time.Millisecond) // data planes know before the stores
	histories := same(l, "the history", (*process).history)
	l.judge.check(histories)
	audit := same(l, "the audit", (*process).audit)
	latest := map[int]corev3.HealthStatus{}
	for _, o := range l.operators {
		l.t.Log(o.check(audit, latest))
	}
	for endpoint, want := range latest {
		for _, p := range l.planes {
			envoy.Eventually(l.t, patience, fmt.Sprintf("%s to publish the override of %s, %v", p.replica, l.judge.world.Address(endpoint), want), func() bool {
				got, _ := p.has(endpoint)
				return got == want
			})
		}
	}
	l.judge.mu.Lock()
	defer l.judge.mu.Unlock()
	l.t.Logf("%d changes of endpoints, %d transitions of each replica, %d healths at data planes", l.judge.changed, len(histories), l.judge.received)
}

// same waits until all replicas answer the same, and returns the answer.
func same[T comparable](l *lab, what string, read func(*process) ([]T, error)) (answer []T) {
	l.t.Helper()
	var difference string
	if !envoy.Await(patience/3, func() bool {
		difference = ""
		for i, r := range l.replicas {
			got, err := read(r)
			if err != nil {
				difference = err.Error()
				return false
			}
			if i == 0 {
				answer = got
			} else if !slices.Equal(answer, got) {
				difference = describeDifference(l.replicas[0].id, answer, r.id, got)
			}
		}
		return difference == ""
	}) {
		l.t.Fatalf("%s differs: %s", what, difference)
	}
	return answer
}

// describeDifference tells where two lists begin to differ.
func describeDifference[T comparable](name string, a []T, other string, b []T) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("entry %d of %d is %+v on %s, and %d of %d is %+v on %s", i, len(a), a[i], name, i, len(b), b[i], other)
		}
	}
	return fmt.Sprintf("%s has %d entries, %s %d", name, len(a), other, len(b))
}
