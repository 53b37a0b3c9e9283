package eds

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxFirstSync is how long a first sync keeps others waiting: a client that does
// not read gives its place up then.
const maxFirstSync = 5 * time.Second

// admission bounds how many clients are sent their first resources of a type at
// the same time, in the order in which they came.
type admission struct {
	mu      sync.Mutex
	free    int
	waiting []*subscription
}

// firstSync is how far a subscription's first sync is.
type firstSync struct {
	state syncState
	limit *time.Timer // ends it; nil where it has not begun
	over  atomic.Bool // state is synced
}

type syncState uint8

const (
	notSynced syncState = iota
	queued
	syncing
	synced
)

// admit tells whether the subscription may send. It is asked before each
// response.
func (a *admission) admit(u *subscription) bool {
	if u.sync.over.Load() {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case u.sync.state == queued:
		return false
	case u.sync.state != notSynced || !u.busy():
		return true
	case a.free == 0:
		u.sync.state = queued
		a.waiting = append(a.waiting, u)
		return false
	default:
		a.begin(u)
		return true
	}
}

// settle is for a subscription that has nothing to send: its first sync is over
// when all was acknowledged.
func (a *admission) settle(u *subscription) {
	if u.sync.over.Load() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if u.sync.state == syncing && !u.busy() {
		a.finish(u)
	}
}

func (a *admission) begin(u *subscription) {
	a.free--
	u.sync.state = syncing
	u.sync.limit = time.AfterFunc(maxFirstSync, func() { a.leave(u) })
}

// finish gives a place to who waits for it longest.
func (a *admission) finish(u *subscription) {
	u.sync.limit.Stop()
	u.sync.synced()
	a.free++
	if len(a.waiting) > 0 {
		next := a.waiting[0]
		a.waiting = slices.Delete(a.waiting, 0, 1)
		a.begin(next)
		next.stream.wakeUp()
	}
}

func (a *admission) inLine() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting)
}

// leave is for a subscription whose stream ends, or whose time is up.
func (a *admission) leave(u *subscription) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch u.sync.state {
	case syncing:
		a.finish(u)
	case queued:
		a.waiting = slices.DeleteFunc(a.waiting, func(other *subscription) bool { return other == u })
		u.sync.synced()
	default:
		u.sync.synced()
	}
}

func (f *firstSync) synced() {
	f.state, f.limit = synced, nil
	f.over.Store(true)
}
