package eds

import (
	"container/list"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
)

// How clients poll.
const (
	ByREST  = "REST"
	ByFetch = "FETCH" // a unary call of gRPC
)

const (
	// pollStays is for how long a poll is remembered that is not made again.
	pollStays = 5 * time.Minute
	// pollRoom is how many bytes, about, all that is remembered of polls takes.
	pollRoom = 64 << 20
)

// pollers remember who polls, and what each was given. A client that polls is one
// without a stream, known by its node id; without one it is not remembered. It
// polls one list of names or several: an Envoy each assignment by itself.
type pollers struct {
	mu    sync.Mutex
	room  int // bytes that are left
	known map[pollerKey]*poller
	polls map[pollKey]*list.Element // in order
	order list.List                 // of *polling, the one made longest ago first
	given map[givenKey]*given       // shared by all who were given the same

	crowded time.Time // when something was last forgotten for lack of room
	unasked int       // assignments that are owed for long
}

type (
	pollerKey struct{ id, by string }
	pollKey   struct {
		pollerKey
		list givenList
	}
)

// poller is a client that polls.
type poller struct {
	pollerKey
	node  *corev3.Node // as kept, of its latest poll
	size  int
	since time.Time
	polls int
}

// costOfPoll is about what the maps and structures of one take.
const costOfPoll = 512

func newPollers() *pollers {
	return &pollers{
		room: pollRoom, known: map[pollerKey]*poller{},
		polls: map[pollKey]*list.Element{}, given: map[givenKey]*given{},
	}
}

// note takes a poll in, and the answer to it.
func (l *pollers) note(by string, m *discoveryv3.DiscoveryRequest, f *fetched, now time.Time) {
	id := brief(m.GetNode().GetId())
	if id == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := pollKey{pollerKey{id, by}, f.list()}
	p := l.poll(key, now)
	l.meet(p.by, keptNode(m.GetNode()))
	p.take(l, m, f, now)
	l.room += p.size
	p.size = costOfPoll + len(id) + len(p.held) + 2*len(p.lastErr)
	l.room -= p.size
	l.forget(now)
}

// poll gives that of a key, as the one made last.
func (l *pollers) poll(key pollKey, now time.Time) *polling {
	if e := l.polls[key]; e != nil {
		l.order.MoveToBack(e)
		return e.Value.(*polling) //nolint:forcetypeassert // nothing else is in the list
	}
	by := l.known[key.pollerKey]
	if by == nil {
		by = &poller{pollerKey: key.pollerKey, since: now}
		l.known[key.pollerKey] = by
	}
	by.polls++
	p := &polling{key: key, by: by}
	l.polls[key] = l.order.PushBack(p)
	return p
}

// meet takes over what a client says of itself.
func (l *pollers) meet(by *poller, n *corev3.Node) {
	l.room += by.size
	by.node, by.size = n, 2*proto.Size(n)
	l.room -= by.size
}

// forget lets go of what was not polled for long, and of what was polled longest
// ago where there is too much to remember.
func (l *pollers) forget(now time.Time) {
	for e := l.order.Front(); e != nil; e = l.order.Front() {
		p := e.Value.(*polling) //nolint:forcetypeassert // nothing else is in the list
		if l.room >= 0 && now.Sub(p.last) < pollStays {
			return
		}
		if l.room < 0 {
			l.crowded = now
		}
		l.unasked -= p.unasked
		l.order.Remove(e)
		delete(l.polls, p.key)
		l.room += p.size
		p.drop(l)
		if p.by.polls--; p.by.polls == 0 {
			delete(l.known, p.by.pollerKey)
			l.room += p.by.size
		}
	}
}

// all gives copies of what is remembered now.
func (l *pollers) all(now time.Time) []polling {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	all := make([]polling, 0, l.order.Len())
	for e := l.order.Front(); e != nil; e = e.Next() {
		p := *e.Value.(*polling) //nolint:forcetypeassert // nothing else is in the list
		p.by = new(*p.by)
		all = append(all, p)
	}
	return all
}

// count gives the number of clients.
func (l *pollers) count(now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	return len(l.known)
}
