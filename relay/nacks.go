package relay

import (
	"context"
	"strings"
	"sync"
	"time"

	"hdsd/relay/message"
	"hdsd/source/xds"
)

// maxHeld is the number of bytes of waiting NACKs above which the next requests of a stream wait, too.
const maxHeld = 1 << 20

// nacks writes a client's requests to the control plane, NACKs at a pace: a control plane may answer each
// NACK at once with the same mistake. Other requests do not wait.
type nacks struct {
	up       *writer
	spawn    func(func()) // runs a goroutine of the stream
	wake     chan struct{}
	released chan struct{} // a waiting NACK was written

	mu      sync.Mutex // guards the fields below, and writes to up
	types   map[string]*nackQueue
	bytes   int  // of the waiting NACKs
	running bool // run has a goroutine
}

// nackQueue has the waiting NACK of a type.
type nackQueue struct {
	patience xds.Patience
	latest   []byte // the latest NACK; nil: none waits
}

func newNACKs(upstream *writer, spawn func(func())) *nacks {
	return &nacks{up: upstream, spawn: spawn, wake: make(chan struct{}, 1), released: make(chan struct{}, 1)}
}

// write writes a request, or keeps a NACK that has to wait. A later NACK of the type replaces a waiting
// one. Before another request of the type, the waiting one goes out.
func (n *nacks) write(ctx context.Context, h *message.Head, m []byte) error {
	if err := n.take(ctx, h, m); err != nil {
		return err
	}
	for n.full() {
		select {
		case <-n.released:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

func (n *nacks) full() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bytes > maxHeld
}

func (n *nacks) take(ctx context.Context, h *message.Head, m []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.Refusal == nil || h.Changes {
		if t := n.types[h.TypeURL]; t != nil && t.latest != nil {
			if err := n.release(ctx, t); err != nil {
				return err
			}
		}
		return n.up.write(ctx, m)
	}
	t := n.queue(h.TypeURL)
	n.bytes += len(m) - len(t.latest)
	if t.latest = m; t.patience.Wait(time.Now()) == 0 {
		return n.release(ctx, t)
	}
	if n.running {
		select {
		case n.wake <- struct{}{}:
		default:
		}
		return nil
	}
	n.running = true
	n.spawn(func() { n.run(ctx) })
	return nil
}

// queue returns the queue of a type. The types beyond maxTypes share one.
func (n *nacks) queue(typeURL string) *nackQueue {
	t := n.types[typeURL]
	if t == nil {
		if n.types == nil {
			n.types = map[string]*nackQueue{}
		}
		if len(n.types) >= maxTypes || len(typeURL) > maxText {
			typeURL = ""
		}
		if t = n.types[typeURL]; t == nil {
			t = &nackQueue{patience: xds.NewPatience()}
			n.types[strings.Clone(typeURL)] = t
		}
	}
	return t
}

// release writes the waiting NACK of a type. The caller holds mu.
func (n *nacks) release(ctx context.Context, t *nackQueue) error {
	m := t.latest
	t.latest = nil
	n.bytes -= len(m)
	t.patience.Spend()
	select {
	case n.released <- struct{}{}:
	default:
	}
	return n.up.write(ctx, m)
}

// run writes each waiting NACK when it is due, until none waits.
func (n *nacks) run(ctx context.Context) {
	for {
		wait, err := n.due(ctx)
		if err != nil || wait == 0 {
			return
		}
		next := time.NewTimer(wait)
		select {
		case <-next.C:
		case <-n.wake:
		case <-ctx.Done():
		}
		if next.Stop(); ctx.Err() != nil {
			return
		}
	}
}

// due writes the NACKs that are due, and returns the time until the next one; 0: none waits.
func (n *nacks) due(ctx context.Context) (wait time.Duration, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range n.types {
		if t.latest == nil {
			continue
		}
		next := t.patience.Wait(time.Now())
		if next == 0 {
			if err := n.release(ctx, t); err != nil {
				return 0, err
			}
		} else if wait == 0 || next < wait {
			wait = next
		}
	}
	n.running = wait > 0
	return wait, nil
}
