package xds

import (
	"fmt"
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/internal/envoyrules"
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
	begun   bool // a request was sent
	change  int  // of the table, at the last request
	list    []string
	nonce   string
	answer  bool // the last response needs an ACK or NACK
	refusal *statuspb.Status
	pushed  int // refused responses since the last request
}

func newStateStream(c *channel) *stateStream {
	s := &stateStream{channel: c, first: true}
	for _, t := range c.tables {
		s.types = append(s.types, &stateType{table: t})
	}
	return s
}

// due returns after what time a request is due; negative is never.
func (t *stateType) due(now time.Time) time.Duration {
	switch {
	case !t.begun && !t.asks():
		return never
	case !t.begun, t.change != t.table.change && !t.wildcard() && t.asks(), t.answer && t.refusal == nil:
		return 0
	case t.answer:
		return t.nacks.Wait(now)
	default:
		return never
	}
}

// ask returns the names to subscribe to. An empty list would mean everything, so the
// last names stay until there are others.
func (t *stateType) ask() []string {
	if t.wildcard() {
		return nil
	}
	if !t.begun || t.asks() {
		t.purge()
		t.list, t.change = t.names(), t.table.change
	}
	return t.list
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
		if t.refusal != nil {
			t.nacks.Spend()
		}
		request := &discoveryv3.DiscoveryRequest{
			TypeUrl: t.typeURL, ResourceNames: t.ask(), ResponseNonce: t.nonce, VersionInfo: t.talk.version, ErrorDetail: t.refusal,
		}
		if !t.begun && !t.complete() {
			request.VersionInfo = "" // else the server may answer that nothing is new
		}
		if s.first || !s.channel.nodeOnce {
			request.Node = s.channel.node
		}
		t.begun, t.answer, t.refusal, t.pushed, s.first = true, false, nil, 0, false
		return request
	}
	return nil
}

// backlog counts what a server sends without waiting for a NACK.
func (s *stateStream) backlog() (most int) {
	for _, t := range s.types {
		most = max(most, t.pushed)
	}
	return most
}

// take accepts a response, or refuses one that exceeds a limit.
func (s *stateStream) take(response *discoveryv3.DiscoveryResponse, excess string) error {
	source := s.channel.source
	i := slices.IndexFunc(s.types, func(t *stateType) bool {
		return t.typeURL == response.GetTypeUrl() || response.GetTypeUrl() == "" && len(s.types) == 1
	})
	var refused *rejection
	switch {
	case i >= 0:
		u := stateUpdate(s.types[i].table, response)
		u.excess = excess
		source.read(s.types[i].table, u)
		source.mu.Lock()
		defer source.mu.Unlock()
		refused = source.accept(s.types[i].table, u)
	case len(s.types) == 1:
		i, refused = 0, wrongStream(response.GetTypeUrl(), s.types[0].typeURL)
		source.mu.Lock()
		defer source.mu.Unlock()
		source.reject(s.types[0].table, response.GetVersionInfo(), refused)
	default:
		return unasked(response.GetTypeUrl())
	}
	t := s.types[i]
	t.nonce, t.answer, t.refusal = response.GetNonce(), true, refused.status()
	if refused != nil {
		t.pushed++
	}
	return nil
}

func wrongStream(have, want string) *rejection {
	return &rejection{whole: fmt.Sprintf("its type_url is %q, and this stream is for %q", have, want)}
}

// unasked is the error for a response that nobody asked for. It does not end the
// stream.
type unasked string

func (u unasked) Error() string {
	return fmt.Sprintf("the type_url %q of a response was not asked for: it is ignored", string(u))
}

// wrapperType is the type of resources with a name and a TTL of their own.
var wrapperType = "type.googleapis.com/" + string((&discoveryv3.Resource{}).ProtoReflect().Descriptor().FullName())

func stateUpdate(t *table, response *discoveryv3.DiscoveryResponse) *update {
	u := &update{version: response.GetVersionInfo(), full: t.typeURL == envoyrules.Cluster, errors: response.GetResourceErrors()}
	u.items = make([]item, len(response.GetResources()))
	for i, packed := range response.GetResources() {
		u.items[i] = unwrap(packed, u.version)
	}
	return u
}

// unwrap makes an item of a resource that may be wrapped.
func unwrap(packed *anypb.Any, version string) item {
	if packed.GetTypeUrl() != wrapperType {
		return item{version: version, body: packed}
	}
	wrapped := &discoveryv3.Resource{}
	w := envoyrules.Weigh(wrapped.ProtoReflect().Descriptor(), packed.GetValue())
	if excess := w.Excess(); excess != "" {
		return item{version: version, wrong: excess}
	}
	if err := proto.Unmarshal(packed.GetValue(), wrapped); err != nil {
		return item{version: version, wrong: fmt.Sprintf("it cannot be decoded: %s", err)}
	}
	one := itemOf(wrapped)
	if one.version == "" {
		one.version = version
	}
	return one
}

// itemOf makes an item of a resource with a name of its own.
func itemOf(r *discoveryv3.Resource) item {
	one := item{name: r.GetName(), version: r.GetVersion(), body: r.GetResource(), ttl: max(0, r.GetTtl().AsDuration())}
	if long := r.GetResourceName().GetName(); long != "" {
		if one.name != "" {
			one.wrong = "it has a name and a resource_name: only one of them may be set"
		}
		one.name = long
	}
	if r.GetTtl() != nil && r.GetTtl().CheckValid() != nil {
		one.wrong = "its ttl is not a duration"
	}
	one.ttl = min(one.ttl, 100*365*24*time.Hour)
	return one
}
