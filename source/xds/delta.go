package xds

import (
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
)

// deltaStream speaks delta on one stream. Guarded by Source.mu.
type deltaStream struct {
	channel *channel
	types   []*deltaType
	first   bool // nothing was sent yet
}

// deltaType is the state of one type on one stream.
type deltaType struct {
	*table
	begun   bool
	change  int            // of the table, at the last request
	sent    map[string]int // serial numbers of the subscribed names
	answers []answer       // to responses, the oldest first
	heard   bool           // a response arrived
}

type answer struct {
	nonce   string
	refusal *statuspb.Status
}

func newDeltaStream(c *channel) *deltaStream {
	s := &deltaStream{channel: c, first: true}
	for _, t := range c.tables {
		s.types = append(s.types, &deltaType{table: t, sent: make(map[string]int)})
	}
	return s
}

// due returns the time until a request is due; negative is never.
func (t *deltaType) due(now time.Time) time.Duration {
	switch {
	case !t.begun && !t.asks(everyName):
		return never
	case !t.begun, t.change != t.table.change && !t.wildcard(), len(t.answers) > 0 && t.answers[0].refusal == nil:
		return 0
	case len(t.answers) > 0:
		return t.nacks.Wait(now)
	default:
		return never
	}
}

func (s *deltaStream) due(now time.Time) time.Duration {
	wait := never
	for _, t := range s.types {
		wait = soonest(wait, t.due(now))
	}
	return wait
}

// next returns the request that is due: an ACK or NACK, a subscription, or both.
func (s *deltaStream) next(now time.Time) *discoveryv3.DeltaDiscoveryRequest {
	for _, t := range s.types {
		if t.due(now) != 0 {
			continue
		}
		request := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: t.typeURL}
		if !t.begun {
			t.purge()
			if !s.channel.source.options.FirstDeltaResponseIsComplete {
				request.InitialResourceVersions = t.versions()
			}
		}
		if !t.wildcard() {
			t.ask(request)
		}
		if len(t.answers) > 0 {
			request.ResponseNonce, request.ErrorDetail = t.answers[0].nonce, t.answers[0].refusal
			if request.GetErrorDetail() != nil {
				t.nacks.Spend()
			}
			t.answers = t.answers[1:]
		}
		if s.first || !s.channel.nodeOnce {
			request.Node = s.channel.node
		}
		t.begun, t.change, s.first = true, t.table.change, false
		return request
	}
	return nil
}

// versions returns the versions of all resources in use.
func (t *table) versions() map[string]string {
	held := make(map[string]string)
	for name, e := range t.entries {
		if e.good != nil && !e.stale { // a stale one has to come again
			held[name] = e.good.version
		}
	}
	return held
}

// ask adds the names to subscribe to and to unsubscribe from.
func (t *deltaType) ask(request *discoveryv3.DeltaDiscoveryRequest) {
	if t.begun && t.change == t.table.change {
		return
	}
	t.purge()
	for name := range t.sent {
		if t.entries[name] == nil {
			request.ResourceNamesUnsubscribe = append(request.ResourceNamesUnsubscribe, name)
			delete(t.sent, name)
		}
	}
	for name, e := range t.entries {
		if t.sent[name] != e.serial {
			request.ResourceNamesSubscribe = append(request.ResourceNamesSubscribe, name)
			t.sent[name] = e.serial
		}
	}
	slices.Sort(request.ResourceNamesSubscribe)
	slices.Sort(request.ResourceNamesUnsubscribe)
}

// backlog returns how many ACKs and NACKs wait to be sent.
func (s *deltaStream) backlog() int {
	count := 0
	for _, t := range s.types {
		count += len(t.answers)
	}
	return count
}

// handle accepts a response, or refuses one that exceeds a limit.
func (s *deltaStream) handle(response *discoveryv3.DeltaDiscoveryResponse, excess string) error {
	source := s.channel.source
	i := slices.IndexFunc(s.types, func(t *deltaType) bool {
		return t.typeURL == response.GetTypeUrl() || response.GetTypeUrl() == "" && len(s.types) == 1
	})
	switch {
	case i >= 0:
		t, u := s.types[i], deltaUpdate(response)
		u.excess, u.first, t.heard = excess, !t.heard, true
		u.full = u.first && t.wildcard() && source.options.FirstDeltaResponseIsComplete
		source.read(t.table, u)
		source.mu.Lock()
		defer source.mu.Unlock()
		t.answers = append(t.answers, answer{response.GetNonce(), source.accept(t.table, u).status()})
	case !source.settings.aggregated:
		t, wrong := s.types[0], wrongStream(response.GetTypeUrl(), s.types[0].typeURL)
		source.mu.Lock()
		defer source.mu.Unlock()
		t.talk.reject(response.GetSystemVersionInfo(), wrong)
		notify(source.changed)
		t.answers = append(t.answers, answer{response.GetNonce(), wrong.status()})
	default:
		return unasked(response.GetTypeUrl())
	}
	return nil
}

func deltaUpdate(response *discoveryv3.DeltaDiscoveryResponse) *update {
	u := &update{
		version: response.GetSystemVersionInfo(),
		removed: make(map[string]bool, len(response.GetRemovedResources())),
		errors:  response.GetResourceErrors(),
	}
	for _, name := range response.GetRemovedResources() {
		u.removed[name] = true
	}
	for _, removed := range response.GetRemovedResourceNames() {
		u.removed[removed.GetName()] = true
	}
	u.items = make([]item, len(response.GetResources()))
	for i, r := range response.GetResources() {
		u.items[i] = itemOf(r)
	}
	return u
}
