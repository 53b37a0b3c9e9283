package xds

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/envoy/rules"
)

// stateStream speaks the state of the world on one stream. Guarded by Source.mu.
type stateStream struct {
	channel *channel
	types   []*stateType
	first   bool // nothing was sent yet
}

// stateType is the state of one type on one stream.
type stateType struct {
	*table
	scope   scope
	limit   time.Duration // after which silence is reported
	begun   bool          // a request was sent
	change  int           // of the table, at the last request
	list    []string
	newest  int // the highest serial number among them
	open    question
	nonce   string
	version string // of the last accepted response on this stream
	answer  bool   // the last response needs an ACK or NACK
	refusal *statuspb.Status
	pushed  int // refused responses since the last request
}

func newStateStream(c *channel) *stateStream {
	s := &stateStream{channel: c, first: true}
	for _, t := range c.tables {
		s.types = append(s.types, &stateType{table: t, scope: c.scope, limit: cmp.Or(c.source.settings.fetchTimeout, silentAfter)})
	}
	return s
}

// due returns the time until a request is due; negative is never.
func (t *stateType) due(now time.Time) time.Duration {
	switch {
	case !t.begun && !t.asks(t.scope):
		return never
	case !t.begun, t.change != t.table.change && !t.wildcard() && t.asks(t.scope), t.answers(now):
		return 0
	case t.answer:
		return soonest(t.nacks.Wait(now), t.open.due(now, t.version, t.limit))
	default:
		return t.open.due(now, t.version, t.limit)
	}
}

// answers reports whether an ACK or NACK may be sent.
func (t *stateType) answers(now time.Time) bool {
	return t.answer && (t.refusal == nil || t.nacks.Wait(now) == 0)
}

// ask updates the names to subscribe to, and reports whether they differ from those of
// the last request. An empty list would mean everything, so the last names stay until
// there are others.
func (t *stateType) ask(now time.Time) (differ bool) {
	if t.wildcard() || t.begun && (t.change == t.table.change || !t.asks(t.scope)) {
		return false
	}
	t.purge()
	last, newest := t.list, t.newest
	t.list, t.change = t.names(t.scope), t.table.change
	var added, unknown []string
	for _, name := range t.list {
		e := t.entries[name]
		t.newest = max(t.newest, e.serial)
		if _, found := slices.BinarySearch(last, name); found && e.serial <= newest {
			continue
		}
		if added = append(added, name); e.good == nil {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		t.open.add(unknown, now)
	} else {
		t.open.add(added, now)
	}
	return len(added) > 0 || len(last) != len(t.list)
}

func (s *stateStream) due(now time.Time) time.Duration {
	wait := never
	for _, t := range s.types {
		wait = soonest(wait, t.due(now))
	}
	return wait
}

// next returns the request that is due: an ACK or NACK, a subscription, or both.
func (s *stateStream) next(now time.Time) *discoveryv3.DiscoveryRequest {
	for _, t := range s.types {
		if t.due(now) != 0 {
			continue
		}
		repeat := t.overdue(s.channel, now)
		differ := t.ask(now)
		if t.begun && !differ && !repeat && !t.answers(now) {
			continue
		}
		if t.refusal != nil {
			t.nacks.Spend()
		}
		request := &discoveryv3.DiscoveryRequest{
			TypeUrl: t.typeURL, ResourceNames: t.list, ResponseNonce: t.nonce, VersionInfo: t.version, ErrorDetail: t.refusal,
		}
		if repeat {
			request.VersionInfo = "" // else the server may find that nothing is new
		}
		if s.first || !s.channel.nodeOnce {
			request.Node = s.channel.node
		}
		t.begun, t.answer, t.refusal, t.pushed, s.first = true, false, nil, 0, false
		return request
	}
	return nil
}

// overdue reports whether the server has to be asked once more, and reports its silence.
func (t *stateType) overdue(c *channel, now time.Time) (repeat bool) {
	if t.open.due(now, t.version, t.limit) != 0 {
		return false
	}
	if now.Sub(t.open.requestedAt) < t.limit {
		t.open.repeated = true
		return true
	}
	t.open.noticed = true
	c.source.talkOf(t.table, t.scope).silence(t.open.added)
	notify(c.source.changed)
	return false
}

// backlog counts responses that a server sends without waiting for a NACK.
func (s *stateStream) backlog() (count int) {
	for _, t := range s.types {
		count = max(count, t.pushed)
	}
	return count
}

// handle accepts a response, or refuses one that exceeds a limit.
func (s *stateStream) handle(response *discoveryv3.DiscoveryResponse, excess string) error {
	source := s.channel.source
	i := slices.IndexFunc(s.types, func(t *stateType) bool {
		return t.typeURL == response.GetTypeUrl() || response.GetTypeUrl() == "" && len(s.types) == 1
	})
	var refused *rejection
	switch {
	case i >= 0:
		u := stateUpdate(s.types[i].table, response)
		u.excess, u.scope = excess, s.channel.scope
		source.read(s.types[i].table, u)
		source.mu.Lock()
		defer source.mu.Unlock()
		refused = source.accept(s.types[i].table, u)
	case !source.settings.aggregated:
		i, refused = 0, wrongStream(response.GetTypeUrl(), s.types[0].typeURL)
		source.mu.Lock()
		defer source.mu.Unlock()
		source.talkOf(s.types[0].table, s.channel.scope).reject(response.GetVersionInfo(), refused)
		notify(source.changed)
	default:
		return unasked(response.GetTypeUrl())
	}
	t := s.types[i]
	t.open = question{}
	if refused == nil {
		t.version = response.GetVersionInfo()
	}
	t.nonce, t.answer, t.refusal = response.GetNonce(), true, refused.status()
	if refused != nil {
		t.pushed++
	}
	return nil
}

func wrongStream(have, want string) *rejection {
	return &rejection{whole: fmt.Sprintf("its type_url is %q, and this stream is for %q", have, want)}
}

// unasked is the error for a response without a request. It does not end the stream.
type unasked string

func (u unasked) Error() string {
	return fmt.Sprintf("the type_url %q of a response was not asked for: it is ignored", string(u))
}

// wrapperType is the type of resources with a name and a TTL of their own.
var wrapperType = "type.googleapis.com/" + string((&discoveryv3.Resource{}).ProtoReflect().Descriptor().FullName())

func stateUpdate(t *table, response *discoveryv3.DiscoveryResponse) *update {
	u := &update{version: response.GetVersionInfo(), full: t.typeURL == rules.Cluster, errors: response.GetResourceErrors()}
	u.items = make([]item, len(response.GetResources()))
	for i, packed := range response.GetResources() {
		u.items[i], _ = unwrap(packed, u.version)
	}
	return u
}

// unwrap makes an item of a resource that may be wrapped. The wrapper is nil if it is not.
func unwrap(packed *anypb.Any, version string) (item, *discoveryv3.Resource) {
	if packed.GetTypeUrl() != wrapperType {
		return item{version: version, body: packed}, nil
	}
	wrapped := &discoveryv3.Resource{}
	w := rules.Weigh(wrapped.ProtoReflect().Descriptor(), packed.GetValue())
	if excess := w.Excess(); excess != "" {
		return item{version: version, wrong: excess}, nil
	}
	if err := proto.Unmarshal(packed.GetValue(), wrapped); err != nil {
		return item{version: version, wrong: fmt.Sprintf("it cannot be decoded: %s", err)}, nil
	}
	result := itemOf(wrapped)
	if result.version == "" {
		result.version = version
	}
	return result, wrapped
}

// itemOf makes an item of a resource with a name of its own.
func itemOf(r *discoveryv3.Resource) item {
	result := item{name: r.GetName(), version: r.GetVersion(), body: r.GetResource(), ttl: max(0, r.GetTtl().AsDuration())}
	if long := r.GetResourceName().GetName(); long != "" {
		if result.name != "" {
			result.wrong = "it has a name and a resource_name: only one of them may be set"
		}
		result.name = long
	}
	if r.GetTtl() != nil && r.GetTtl().CheckValid() != nil {
		result.wrong = "its ttl is not a duration"
	}
	result.ttl = min(result.ttl, 100*365*24*time.Hour)
	return result
}
