package coordinator

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"hdsd/log/etcd"
	"hdsd/replica"
	"hdsd/replica/engine"
)

const (
	// probeAttempts and probePause bound the search for the process of a leader whose link has ended. A process that
	// is killed may leave its address a moment later.
	probeAttempts = 5
	probePause    = 20 * time.Millisecond

	// probePatience is the longest time of an attempt.
	probePatience = time.Second
)

// leaderProbe looks whether the process of a leader is gone when its link ends, and ends its session then. So another
// replica leads before the session's TTL has passed.
type leaderProbe struct {
	engine *engine.Engine
	ctx    context.Context // ends with close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	busy   chan struct{} // holds a value during a look
}

func newLeaderProbe(e *engine.Engine) *leaderProbe {
	p := &leaderProbe{engine: e, busy: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// observe takes the events of the links. It does not wait.
func (p *leaderProbe) observe(e replica.Event) {
	closed, ok := e.(replica.LinkClosed)
	if !ok {
		return
	}
	view, _ := p.engine.View()
	if view.Leader != closed.Replica {
		return
	}
	select {
	case p.busy <- struct{}{}:
		p.tasks.Go(func() {
			defer func() { <-p.busy }()
			p.look(&view)
		})
	default: // it looks already
	}
}

// look ends the session of a leader at whose address nobody listens.
func (p *leaderProbe) look(view *etcd.View) {
	for range probeAttempts {
		if isGone(p.ctx, addressOf(view)) {
			_ = p.engine.Depose(p.ctx, view.Epoch) // with an error, the session ends by itself
			return
		}
		select {
		case <-time.After(probePause):
		case <-p.ctx.Done():
			return
		}
	}
}

// isGone reports whether the machine at an address answers that nobody listens there.
func isGone(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{Timeout: probePatience}).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// addressOf returns the address of the leader.
func addressOf(view *etcd.View) string {
	for i := range view.Members {
		if view.Members[i].ID == view.Leader {
			return view.Members[i].Address
		}
	}
	return ""
}

// close ends a look.
func (p *leaderProbe) close() {
	p.cancel()
	p.tasks.Wait()
}
