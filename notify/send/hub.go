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

// lookEvery is how often a Hub looks for what nobody posts.
const lookEvery = time.Second

// Options are what a Hub needs.
type Options struct {
	Node       string // hdsd's name, which receivers are told
	Dir        string // for what receivers were told; empty: it is not kept
	Log        zerolog.Logger
	Registerer prometheus.Registerer

	// Look returns conditions that nobody posts, such as a disk that fails. It is called
	// once a second, and must not wait; nil: there are none.
	Look func() []notify.Condition

	ReadSecret func(path string) ([]byte, error) // a secret, password or token
	ReadTLS    func(TLS) (*tls.Config, error)

	Transport http.RoundTripper // nil: the default one
}

// Receiver is a receiver as it is configured.
type Receiver struct {
	Name   string
	Target Target
	Filter notify.Filter
}

// Hub decides who is told what, and delivers it.
type Hub struct {
	log     zerolog.Logger
	sender  *sender
	metrics *metrics
	keep    *keeper
	look    func() []notify.Condition
	wake    chan struct{}

	posting sync.Mutex // held for moments only
	posted  []notify.Change
	all     bool // Confirm was called

	mu        sync.Mutex // never held while somebody is waited for
	wrong     map[notify.Key]notify.Condition
	looked    map[notify.Key]bool
	receivers []*recipient
	confirmed bool
	running   context.Context // of Run; nil before and after
	owned     sync.WaitGroup  // the outboxes that run
}

// recipient is a receiver at work.
type recipient struct {
	Receiver
	decides *notify.Receiver
	outbox  *outbox
	stop    context.CancelFunc // nil: it does not run
}

// New makes a Hub, which knows what receivers were told before a restart.
func New(o Options) *Hub {
	if o.Transport == nil {
		o.Transport = http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library documents its type
	}
	h := &Hub{
		log: o.Log, sender: newSender(&o, o.Transport), look: o.Look, wake: make(chan struct{}, 1),
		wrong: map[notify.Key]notify.Condition{}, looked: map[notify.Key]bool{},
	}
	h.keep = newKeeper(o.Dir, o.Log, h.told)
	h.metrics = newMetrics(o.Registerer, h)
	return h
}

// Post takes in what begins and ends to be wrong. It does not wait.
func (h *Hub) Post(changes []notify.Change) {
	h.posting.Lock()
	h.posted = append(h.posted, changes...)
	h.posting.Unlock()
	h.stir()
}

// Confirm says that all that is wrong was posted since the start.
func (h *Hub) Confirm() {
	h.posting.Lock()
	h.all = true
	h.posting.Unlock()
	h.stir()
}

func (h *Hub) stir() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Set sets the receivers. One that keeps its name, type and URL goes on with what it was told,
// however hdsd shows there who it is.
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
			told := h.keep.restored(c.Name, c.Target)
			r = &recipient{decides: notify.NewReceiver(c.Filter, told), outbox: newOutbox(h, c.Name, c.Target, told)}
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
	h.keep.before = nil // of receivers that are no more
	h.keep.mark()
	h.stir()
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
	h.owned.Wait() // first, as they may still be told that something was taken
	stopKeeping()
	keeping.Wait()
	h.sender.client.CloseIdleConnections()
}

// step decides what is due, and returns the time until the next step.
func (h *Hub) step(now time.Time) time.Duration {
	h.posting.Lock()
	changes, all := h.posted, h.all
	h.posted = nil
	h.posting.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	changes = h.lookFor(changes)
	for i := range changes {
		if c := &changes[i]; c.Over {
			delete(h.wrong, c.Key)
		} else {
			h.wrong[c.Key] = c.Condition
		}
	}
	next := now.Add(lookEvery)
	for _, r := range h.receivers {
		r.outbox.add(r.decides.Apply(now, changes), now)
		if all && !h.confirmed {
			r.outbox.add(r.decides.Confirm(now), now)
		}
		if due, ok := r.decides.NextDeadline(); ok && due.Before(next) {
			next = due
		}
	}
	h.confirmed = h.confirmed || all
	return max(next.Sub(now), 10*time.Millisecond)
}

// lookFor adds what nobody posts.
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
			changes = append(changes, notify.Change{Condition: notify.Condition{Key: key}, Over: true})
		}
	}
	h.looked = found
	return changes
}

// States returns how the receivers are, in the order of the configuration.
func (h *Hub) States() []State {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]State, len(h.receivers))
	for i, r := range h.receivers {
		all[i] = r.outbox.present()
	}
	return all
}

// told returns what receivers were told and is not over.
func (h *Hub) told() []kept {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]kept, len(h.receivers))
	for i, r := range h.receivers {
		all[i] = kept{Name: r.Name, Type: r.Target.Type, Target: fingerprint(r.Target), Open: r.outbox.told()}
	}
	return all
}

// Test sends a marked notice to a receiver, once, and returns what that answered. It reports
// whether there is such a receiver.
func (h *Hub) Test(ctx context.Context, name string) (answer string, known bool, err error) {
	h.mu.Lock()
	at := slices.IndexFunc(h.receivers, func(r *recipient) bool { return r.Name == name })
	var target Target
	if at >= 0 {
		target = h.receivers[at].Target
	}
	h.mu.Unlock()
	if at < 0 {
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
