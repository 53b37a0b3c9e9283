package hds

import "sync"

// lifetime ends a session once, for one reason.
type lifetime struct {
	stopped chan struct{} // closed by stop
	done    chan struct{} // closed when the session no longer calls the sink

	followed chan struct{} // closed when another session replaces an ending one; guarded by Server.mu

	once  sync.Once
	cause error // written before stopped is closed
}

func newLifetime() lifetime {
	return lifetime{stopped: make(chan struct{}), done: make(chan struct{}), followed: make(chan struct{})}
}

// stop ends the session with err; the first call counts. It does not wait.
func (l *lifetime) stop(err error) {
	l.once.Do(func() {
		l.cause = err
		close(l.stopped)
	})
}
