package eds

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxFirstSync bounds the time for which a first sync keeps others waiting. After it, a client
// that does not read loses its place.
const maxFirstSync = 5 * time.Second

// admission bounds the clients that get their first resources of a type at the same time. The
// others wait in order of arrival.
type admission struct {
	mu      sync.Mutex
	free    int
	waiting []*subscription
}

// firstSync is the progress of a subscription's first sync.
type firstSync struct {
	state    syncState
	limit    *time.Timer // ends the sync; nil before it begins
	finished atomic.Bool // state is synced
}

type syncState uint8

const (
	notSynced syncState = iota
	queued
	syncing
	synced
)

// admit reports whether the subscription may send its next response.
func (a *admission) admit(u *subscription) bool {
	if u.sync.finished.Load() {
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

// idle handles a subscription without pending resources. Its first sync ends once the client has
// acknowledged everything.
func (a *admission) idle(u *subscription) {
	if u.sync.finished.Load() {
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

// finish ends a sync and gives its place to the subscription that waited longest.
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

func (a *admission) waitingCount() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting)
}

// leave handles the end of a subscription's stream, or of its time.
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
	f.finished.Store(true)
}
