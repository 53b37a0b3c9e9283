package eds

import (
	"cmp"
	"iter"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/health"
)

// maxNode is the size up to which a client's node is kept, its extensions apart.
const maxNode = 64 << 10

// keptNode returns the kept part of a client's node: everything but the extensions, of which
// Envoy lists hundreds. Of a node that is still large it returns the names. It changes the node,
// which the caller must not use afterwards.
func keptNode(n *corev3.Node) *corev3.Node {
	n.Extensions = nil
	if proto.Size(n) <= maxNode {
		return n
	}
	return &corev3.Node{Id: brief(n.GetId()), Cluster: brief(n.GetCluster()), UserAgentName: brief(n.GetUserAgentName())}
}

// Subscriber is a client's stream, or a client that polls.
type Subscriber struct {
	// Node is the first of a stream, or the latest of a client that polls, without its
	// extensions. Of a very large node only the names are kept. Nil: there was none. It must not
	// be changed.
	Node      *corev3.Node
	Stream    uint64 // a number: a node may have several streams; 0: it polls
	Service   string // ADS, EDS or CDS; poll.ByREST or poll.ByFetch
	Delta     bool
	Connected time.Time // for a client that polls: its first poll

	resources func() []Resource
}

// Subscribers returns the streams with requests, and the clients that poll, by node id and
// stream.
func (s *Server) Subscribers() iter.Seq[Subscriber] {
	return func(yield func(Subscriber) bool) {
		subscribers := s.fetcher.subscribers()
		for _, st := range s.streams.list() {
			if c, ok := st.subscriber(); ok {
				subscribers = append(subscribers, c)
			}
		}
		slices.SortFunc(subscribers, func(a, b Subscriber) int {
			return cmp.Or(cmp.Compare(a.Node.GetId(), b.Node.GetId()), cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Service, b.Service))
		})
		for _, c := range subscribers {
			if !yield(c) {
				return
			}
		}
	}
}

func (st *stream) subscriber() (Subscriber, bool) {
	service := "ADS"
	if st.table != nil {
		service = "EDS"
		if st.table.typeURL == resourcev3.ClusterType {
			service = "CDS"
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	active := st.node != nil || st.subs != [2]*subscription{}
	return Subscriber{
		Node: st.node, Stream: st.id, Service: service, Delta: st.delta, Connected: st.start, resources: st.resources,
	}, active
}

// State is a client's state of a resource.
type State uint8

// The states of a resource. A missing one can have any of them, because clients are also sent
// its absence.
const (
	NotSent     State = iota // nothing was sent, and the client has none
	Outdated                 // the client accepted it, but it has changed since
	Outstanding              // it was sent, and the client has not answered
	Accepted                 // the client has the latest version
	Refused                  // the client refused its latest version
)

// Resource is a resource that a client subscribes to or polls.
type Resource struct {
	TypeURL string
	Name    string
	Zone    health.Locality // of its health; empty: the verdicts
	State   State
	Exists  bool      // there is such a resource
	Holds   bool      // the client has a version of it, the last that it accepted or claims
	Version string    // last sent or claimed; empty: none
	Sent    time.Time // zero: nothing was sent on this stream
	Refusal *Refusal  // the latest, until the client accepts the resource; else nil

	frame *frame
}

// Refusal is a version that a client did not accept.
type Refusal struct {
	Text    string // the client's message
	Time    time.Time
	Version string // empty for a removal

	frame *frame
}

// Body returns the latest version sent; nil if there was none, or it is no longer kept because
// the resource has changed since. It must not be changed.
func (r *Resource) Body() *anypb.Any { return r.frame.message(r.TypeURL) }

// Body returns the refused version; nil for a removal, or if too much was refused to keep it. It
// must not be changed.
func (r *Refusal) Body(typeURL string) *anypb.Any { return r.frame.message(typeURL) }

func (f *frame) message(typeURL string) *anypb.Any {
	if f == nil {
		return nil
	}
	return &anypb.Any{TypeUrl: typeURL, Value: f.bytes[f.value:len(f.bytes):len(f.bytes)]}
}

// Resources returns the client's subscribed or polled resources: clusters, then assignments, by
// name.
func (c *Subscriber) Resources() []Resource { return c.resources() }

func (st *stream) resources() (resources []Resource) {
	for _, u := range st.subscriptions() {
		resources = append(resources, u.resources()...)
	}
	return resources
}

func (u *subscription) resources() []Resource {
	copies := copiesOf(u)
	slices.SortFunc(copies, func(a, b copied) int { return byKey(&a.watch, &b.watch) })
	resources := make([]Resource, len(copies))
	for i := range copies {
		w := &copies[i].watch
		resources[i] = w.resource(u.table.typeURL, w.current(), copies[i].underWay)
	}
	return resources
}

// copied is a copy of a watch, with the outstanding frame.
type copied struct {
	watch    watch
	underWay *frame
}

// copiesOf returns a copy of the client's state of each resource.
func copiesOf(u *subscription) []copied {
	u.mu.Lock()
	defer u.mu.Unlock()
	copies := make([]copied, 0, u.interest.size())
	underWay := u.delivery.underWay()
	for w, f := range u.interest.all() {
		copies = append(copies, copied{
			watch:    watch{slot: w.slot, sub: u, located: w.located, state: w.state, sent: w.sent, sentAt: w.sentAt, holds: w.holds, failure: w.failure},
			underWay: cmp.Or(f, underWay[w]),
		})
	}
	return copies
}

// resource describes a copy of a watch, given the latest frame and the outstanding one.
func (w *watch) resource(typeURL string, latest, underWay *frame) Resource {
	zone, _ := zoneOf(w.slot.choice())
	r := Resource{TypeURL: typeURL, Name: w.slot.name, Zone: zone, Exists: latest != nil, Holds: w.holds, Version: showVersion(w.sub.beat.shown(w.sent))}
	if w.sentAt != 0 {
		r.Sent = time.Unix(0, w.sentAt).UTC()
	}
	switch {
	case w.state == pending:
		r.State = Outstanding
	case w.state == refused:
		r.State = Refused
	case w.sent == 0 && w.state == fresh:
		r.State = NotSent
	case w.sent != versionOf(latest):
		r.State = Outdated
	default:
		r.State = Accepted
	}
	kept := []*frame{underWay, latest}
	if w.failure != nil {
		kept = append(kept, w.failure.frame)
		r.Refusal = &Refusal{Text: w.failure.text, Time: w.failure.time.UTC(), Version: showVersion(w.sub.beat.shown(w.failure.version))}
		r.Refusal.frame = withVersion(kept, w.failure.version)
	}
	r.frame = withVersion(kept, w.sent)
	return r
}

func withVersion(frames []*frame, version uint64) *frame {
	for _, f := range frames {
		if f != nil && f.version == version {
			return f
		}
	}
	return nil
}

// showVersion returns an empty text for no version, and for one that is not hdsd's.
func showVersion(version uint64) string {
	if version == 0 || version == foreign {
		return ""
	}
	return formatVersion(version)
}
