package send

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"hdsd/notify"
)

// lookEvery is the interval between calls of Options.Look.
const lookEvery = time.Second

// Options are the settings of a Hub.
type Options struct {
	Node       string // hdsd's name, as sent to receivers
	Dir        string // folder for open notices; empty: they are not kept
	Log        zerolog.Logger
	Registerer prometheus.Registerer

	// Look returns conditions that nothing posts, such as a failing disk. It is called once a
	// second, and must not wait; nil: there are none.
	Look func() []notify.Condition

	ReadSecret func(path string) ([]byte, error) // a secret, password or token
	ReadTLS    func(TLS) (*tls.Config, error)

	Transport http.RoundTripper // nil: the default one
}

// Receiver is a configured receiver.
type Receiver struct {
	Name   string
	Target Target
	Filter notify.Filter
}

// Hub decides which receiver gets which notice, and delivers it.
type Hub struct {
	log     zerolog.Logger
	sender  *sender
	metrics *metrics
	keep    *keeper
	look    func() []notify.Condition
	wake    signal

	posting  sync.Mutex // held for moments only
	posted   []notify.Change
	complete bool // Confirm was called

	mu        sync.Mutex // never held while waiting
	wrong     map[notify.Key]notify.Condition
	looked    map[notify.Key]bool
	receivers []*recipient
	confirmed bool
	running   context.Context // of Run; nil before and after
	owned     sync.WaitGroup  // running outboxes
}

// recipient is a receiver with its outbox.
type recipient struct {
	Receiver
	decides *notify.Receiver
	outbox  *outbox
	stop    context.CancelFunc // nil: it does not run
}

// New makes a Hub, which loads the open notices from before a restart.
func New(o Options) *Hub {
	if o.Transport == nil {
		o.Transport = http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library documents its type
	}
	h := &Hub{
		log: o.Log, sender: newSender(&o, o.Transport), look: o.Look, wake: newSignal(),
		wrong: map[notify.Key]notify.Condition{}, looked: map[notify.Key]bool{},
	}
	h.keep = newKeeper(o.Dir, o.Log, h.openNotices)
	h.metrics = newMetrics(o.Registerer, h)
	return h
}

// Post adds changes of conditions. It does not wait.
func (h *Hub) Post(changes []notify.Change) {
	h.posting.Lock()
	h.posted = append(h.posted, changes...)
	h.posting.Unlock()
	h.wake.raise()
}

// Confirm declares all present conditions posted since the start.
func (h *Hub) Confirm() {
	h.posting.Lock()
	h.complete = true
	h.posting.Unlock()
	h.wake.raise()
}

// Set sets the receivers. One that keeps its name, type and URL keeps its open notices,
// regardless of its credentials.
func (h *Hub) Set(receivers []Receiver) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := map[string]*recipient{}
	for _, r := range h.receivers {
		before[r.Name] = r
	}
	now, wrong := time.Now(), slices.Collect(maps.Values(h.wrong))
	h.receivers = nil
	for _, c := range receivers {
		r := before[c.Name]
		if r == nil || fingerprint(r.Target) != fingerprint(c.Target) {
			notices := h.keep.restored(c.Name, c.Target)
			r = &recipient{decides: notify.NewReceiver(c.Filter, notices), outbox: newOutbox(h, c.Name, c.Target, notices)}
			h.start(r)
		} else {
			delete(before, c.Name)
			r.outbox.retarget(c.Target)
		}
		r.Receiver = c
		r.outbox.add(r.decides.SetFilter(now, c.Filter, wrong), now)
		h.receivers = append(h.receivers, r)
	}
	for _, r := range before {
		if r.stop != nil {
			r.stop()
		}
	}
	h.keep.before = nil // of removed receivers
	h.keep.changed.raise()
	h.wake.raise()
}

// start runs an outbox, if the hub runs. The caller holds mu.
func (h *Hub) start(r *recipient) {
	if h.running == nil || r.stop != nil {
		return
	}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(h.running)
	h.owned.Go(func() { r.outbox.run(ctx) })
}

// Run decides and delivers until ctx ends.
func (h *Hub) Run(ctx context.Context) {
	h.mu.Lock()
	h.running = ctx
	for _, r := range h.receivers {
		h.start(r)
	}
	h.mu.Unlock()
	var keeping sync.WaitGroup
	kept, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	defer stopKeeping()
	keeping.Go(func() { h.keep.run(kept) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for done := false; !done; {
		select {
		case <-ctx.Done():
			done = true
		case <-h.wake:
		case <-timer.C:
		}
		if !done {
			timer.Reset(h.step(time.Now()))
		}
	}
	h.mu.Lock()
	h.running = nil
	h.mu.Unlock()
	h.owned.Wait() // first, as they may still report deliveries
	stopKeeping()
	keeping.Wait()
	h.sender.client.CloseIdleConnections()
}

// step decides which notices are due, and returns the time until the next step.
func (h *Hub) step(now time.Time) time.Duration {
	h.posting.Lock()
	changes, complete := h.posted, h.complete
	h.posted = nil
	h.posting.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	changes = h.lookFor(changes)
	for i := range changes {
		if c := &changes[i]; c.Ended {
			delete(h.wrong, c.Key)
		} else {
			h.wrong[c.Key] = c.Condition
		}
	}
	next := now.Add(lookEvery)
	for _, r := range h.receivers {
		r.outbox.add(r.decides.Apply(now, changes), now)
		if complete && !h.confirmed {
			r.outbox.add(r.decides.Confirm(now), now)
		}
		if due, ok := r.decides.NextDeadline(); ok && due.Before(next) {
			next = due
		}
	}
	h.confirmed = h.confirmed || complete
	return max(next.Sub(now), 10*time.Millisecond)
}

// lookFor adds the changes of conditions from Look.
func (h *Hub) lookFor(changes []notify.Change) []notify.Change {
	if h.look == nil {
		return changes
	}
	found := map[notify.Key]bool{}
	for _, c := range h.look() {
		if found[c.Key] = true; !h.looked[c.Key] {
			changes = append(changes, notify.Change{Condition: c})
		}
	}
	for key := range h.looked {
		if !found[key] {
			changes = append(changes, notify.Change{Condition: notify.Condition{Key: key}, Ended: true})
		}
	}
	h.looked = found
	return changes
}

// States returns the states of the receivers, in the order of the configuration.
func (h *Hub) States() []State {
	h.mu.Lock()
	defer h.mu.Unlock()
	states := make([]State, len(h.receivers))
	for i, r := range h.receivers {
		states[i] = r.outbox.present()
	}
	return states
}

// openNotices returns the open notices of each receiver.
func (h *Hub) openNotices() []kept {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]kept, len(h.receivers))
	for i, r := range h.receivers {
		list[i] = kept{Name: r.Name, Type: r.Target.Type, Target: fingerprint(r.Target), Open: r.outbox.openNotices()}
	}
	return list
}

// Test sends a marked notice to a receiver, once, and returns the answer. It reports whether the
// receiver exists.
func (h *Hub) Test(ctx context.Context, name string) (answer string, found bool, err error) {
	h.mu.Lock()
	index := slices.IndexFunc(h.receivers, func(r *recipient) bool { return r.Name == name })
	var target Target
	if index >= 0 {
		target = h.receivers[index].Target
	}
	h.mu.Unlock()
	if index < 0 {
		return "", false, nil
	}
	now := time.Now().UTC()
	n := notify.Notice{Ended: now, Condition: notify.Condition{
		Key: notify.Key{Kind: notify.Test}, Since: now.Add(-time.Second), Command: "hdsd notify list",
		Text: fmt.Sprintf("a test of receiver %s: nothing is wrong, and nothing is to be done", name),
	}}
	n.ID = n.Condition.ID()
	if target.Type == Alertmanager {
		n.Ended = now.Add(time.Minute) // it shows nothing that is over
	}
	answer, err = h.sender.send(ctx, &target, []notify.Notice{n}, now)
	return answer, true, err
}
