package link

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/replica"
)

// Options are the parameters of Links.
type Options struct {
	ID      string // of this replica
	Process uint64 // a random number of this process
	Version string // of this program
	Log     zerolog.Logger

	// Credentials are those of calls to other replicas; nil: no TLS.
	Credentials credentials.TransportCredentials

	// Dial connects to an address; nil: by TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	// Registerer gets the metrics; nil: none.
	Registerer prometheus.Registerer
}

// Status is the state of the link to another replica.
type Status struct {
	Connected bool
	Since     time.Time // when the link opened or ended, or SetMembers brought the replica
	Version   string    // of the program of the other replica; empty before the first link
	Err       string    // why the latest link or call ended; empty: the link is open, or none has ended
}

// Links carries messages to and from other replicas.
type Links struct {
	options Options
	post    func(replica.Event)
	decoder *decoder
	metrics *metrics

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex // guards the fields below; nobody posts while holding it
	closed  bool
	changed chan struct{} // closes when the members change
	members map[string]*member
	links   map[string]*connection // the latest of each replica
	number  uint64                 // of the latest link
}

// member is another replica.
type member struct {
	address string
	status  Status
	stop    context.CancelFunc // ends the calls; nil: the other one calls
}

// New returns Links without members. post gets the events. It may wait for room in a mailbox, and must return when
// nobody reads that any more. Close the Links in the end.
func New(o Options, post func(replica.Event)) *Links {
	l := &Links{
		options: o, post: post, decoder: newDecoder(), metrics: newMetrics(o.Registerer),
		changed: make(chan struct{}), members: map[string]*member{}, links: map[string]*connection{},
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Register adds the service that accepts calls of other replicas. Its server needs ServerOptions.
func (l *Links) Register(r grpc.ServiceRegistrar) {
	replicav1.RegisterLinksServer(r, &acceptor{links: l})
}

// These errors end links and calls.
var (
	errClosed   = errors.New("this replica stops")
	errReplaced = errors.New("a newer connection of the same replica replaces this one")
	errMoved    = errors.New("the replica has another address")
	errNoMember = errors.New("the replica has no session any more")
	errBusy     = errors.New("a message is sent before the previous one has left")
)

// SetMembers tells the other replicas that have a session, and their addresses. It may list this one. It returns at
// once.
func (l *Links) SetMembers(addresses map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	for id, m := range l.members {
		address, present := addresses[id]
		if !present {
			l.stopCalls(id, m, errNoMember)
			l.links[id].end(errNoMember)
			delete(l.members, id)
		} else if address != m.address {
			l.stopCalls(id, m, errMoved)
			m.address = address
			l.startCalls(id, m)
		}
	}
	for id, address := range addresses {
		if l.members[id] == nil && id != l.options.ID {
			m := &member{address: address, status: Status{Since: time.Now()}}
			l.members[id] = m
			l.startCalls(id, m)
		}
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// startCalls starts to call a member, if that is for this replica to do. The caller holds mu.
func (l *Links) startCalls(id string, m *member) {
	if l.options.ID >= id {
		return
	}
	ctx, stop := context.WithCancel(l.ctx)
	m.stop = stop
	c := &caller{links: l, id: id, address: m.address}
	l.tasks.Go(func() { c.run(ctx) })
}

// stopCalls ends the calls to a member, and the link of the latest one. The caller holds mu.
func (l *Links) stopCalls(id string, m *member, reason error) {
	if m.stop != nil {
		l.links[id].end(reason)
		m.stop()
	}
}

// Send sends a message. A link that has ended ignores it.
func (l *Links) Send(s replica.Send) {
	l.mu.Lock()
	k := l.links[s.Replica]
	l.mu.Unlock()
	if k == nil || k.number != s.Link {
		return
	}
	select {
	case k.queue <- s.Message:
	default:
		k.end(errBusy)
	}
}

// Status returns the state of the links to the members.
func (l *Links) Status() map[string]Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]Status, len(l.members))
	for id, m := range l.members {
		all[id] = m.status
	}
	return all
}

// Close ends all links and calls, and waits for the goroutines.
func (l *Links) Close() {
	l.mu.Lock()
	l.closed = true
	for _, k := range l.links {
		k.end(errClosed)
	}
	l.cancel()
	l.mu.Unlock()
	l.tasks.Wait()
}

// enter counts a task that Close waits for. It returns false if Close has begun. The caller ends the task.
func (l *Links) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.tasks.Add(1)
	return true
}

// note notes what becomes of the link to a replica.
func (l *Links) note(id string, change func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.members[id]; m != nil {
		change(&m.status)
	}
}
