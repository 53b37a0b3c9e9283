package eds

import (
	"context"
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/eds/poll"
	"hdsd/envoy"
	"hdsd/internal/gate"
	"hdsd/peer/access"
)

// atOnce is the number of simultaneous fetches; others wait.
const atOnce = 2

// fetcher answers fetches, by gRPC and REST, with the latest resources.
type fetcher struct {
	identifier   string
	maxBodyBytes int
	zoning       zoning
	published    *publication
	limiter      *limiter
	recorder     *recorder
	gate         *gate.Gate
	polls        *poll.Tracker
	unasked      *unaskedCounter
	turns        chan struct{} // holds one for each running fetch
}

func newFetcher(s *Server) *fetcher {
	return &fetcher{
		identifier: s.identifier, maxBodyBytes: s.maxBodyBytes, zoning: s.zoning,
		published: s.published, limiter: s.limiter, recorder: s.recorder, gate: s.gate, polls: s.polls, unasked: s.unasked,
		turns: make(chan struct{}, atOnce),
	}
}

// fetched is the answer to a fetch: the requested resources that exist, by name. Version and
// nonce are a hash of the content, independent of the client and of its earlier answers.
type fetched struct {
	selection
	table    *table
	keys     []string // sorted; none: everything
	list     poll.List
	choice   string // of the variant of names without a locator
	version  string
	frames   []*frame // of the slots
	response *response
}

// fetch answers a request; no names, or "*", request everything.
func (s *fetcher) fetch(ctx context.Context, t *table, m *discoveryv3.DiscoveryRequest) (*fetched, error) {
	if typeURL := m.GetTypeUrl(); typeURL != "" && typeURL != t.typeURL {
		return nil, errOtherType(t)
	}
	if err := envoy.CheckNode(m.GetNode()); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if err := access.FromContext(ctx).Admit(accessNode(m.GetNode())); err != nil {
		return nil, err
	}
	names, err := s.requestedKeys(t, m)
	if err != nil {
		return nil, err
	}
	permitted := access.FromContext(ctx).Clusters()
	whole := len(names) == 0
	if whole && !permitted.All() {
		names = s.allOf(t, permitted)
	}
	s.recorder.fetched(t)
	if e := m.GetErrorDetail(); e != nil {
		s.recorder.refused(t, brief(m.GetNode().GetId()), brief(e.GetMessage()))
	}
	incomplete := s.published.incomplete.Load() // read before the resources are
	f := &fetched{
		table: t, keys: names, list: poll.ListOf(t.typeURL, names), choice: s.zoning.choice(t, localityOf(m.GetNode())), response: newResponse(),
	}
	f.collect(s.published.find(t, names, f.choice).restrict(permitted))
	if incomplete && (whole || !t.answerable(names, len(f.frames))) {
		return nil, errIncomplete
	}
	f.version = formatVersion(f.response.digest.Sum64())
	return f, nil
}

// allOf returns the names of all resources visible to a client. A client that may see only some,
// and requests everything, requests these. There is at least one name: none would mean
// everything.
func (s *fetcher) allOf(t *table, permitted access.Clusters) (names []string) {
	for _, slot := range s.published.find(t, nil, "").slots {
		if permitted.Has(slot.baseName()) && slot.latest() != nil {
			names = append(names, slot.name)
		}
	}
	if len(names) == 0 {
		return []string{""} // nothing has this name
	}
	return names
}

// collect adds the resources that exist.
func (f *fetched) collect(found selection) {
	f.slots, f.frames = make([]*slot, 0, len(found.slots)), make([]*frame, 0, len(found.slots))
	f.response.parts = slices.Grow(f.response.parts, len(found.slots)+1) // and the tail
	for i, slot := range found.slots {
		frame := slot.latest()
		if frame == nil {
			continue
		}
		f.slots, f.frames = append(f.slots, slot), append(f.frames, frame)
		if found.located != nil {
			f.located = append(f.located, found.located[i])
		}
		f.response.pick(slot, found.byLocator(i), frame)
	}
}

// requestedKeys returns the keys of a fetch, sorted; none if it requests everything.
func (s *fetcher) requestedKeys(t *table, m *discoveryv3.DiscoveryRequest) ([]string, error) {
	names := s.zoning.keys(t.typeURL, m.GetResourceNames(), m.GetResourceLocators())
	slices.Sort(names)
	names = slices.Compact(names)
	if err := s.limiter.limits().check(len(names), lengthOf(names)); err != nil {
		return nil, err
	}
	if slices.Contains(names, wildcard) {
		return nil, nil
	}
	return names, nil
}

// isKnown reports whether the client already has the answer, or refused it.
func (f *fetched) isKnown(m *discoveryv3.DiscoveryRequest) bool {
	return m.GetVersionInfo() == f.version || m.GetErrorDetail() != nil && m.GetResponseNonce() == f.version
}

// turn waits for the turn of a fetch.
func (s *fetcher) turn(ctx context.Context) (done func(), err error) {
	if s.gate.Closed() { // even if a turn is free
		return nil, gate.ErrClosing
	}
	select {
	case s.turns <- struct{}{}:
		return func() { <-s.turns }, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	case <-s.gate.Closing():
		return nil, gate.ErrClosing
	}
}

// unary returns the description of a service whose fetch answers with shared frames.
// The generated description has no type for them.
func (s *fetcher) unary(service grpc.ServiceDesc, method string, t *table) *grpc.ServiceDesc {
	info := grpc.UnaryServerInfo{FullMethod: "/" + service.ServiceName + "/" + method}
	answer := func(ctx context.Context, m any) (any, error) {
		return s.answer(ctx, t, m.(*discoveryv3.DiscoveryRequest))
	}
	service.Methods = []grpc.MethodDesc{{
		MethodName: method,
		Handler: func(server any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			m := new(discoveryv3.DiscoveryRequest)
			handle := answer
			if refusal := s.limiter.decode(decode, m); refusal != nil {
				handle = func(context.Context, any) (any, error) { return nil, refusal }
			}
			if intercept == nil {
				return handle(ctx, m)
			}
			called := info
			called.Server = server
			return intercept(ctx, m, &called, handle) // which also sees refusals
		},
	}}
	return &service
}

// answer answers a fetch over gRPC. It always sends everything: gRPC cannot say that nothing has
// changed.
func (s *fetcher) answer(ctx context.Context, t *table, m *discoveryv3.DiscoveryRequest) (any, error) {
	done, err := s.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	f, err := s.fetch(ctx, t, m)
	if err != nil {
		return nil, err
	}
	s.record(poll.ByFetch, m, f, time.Now())
	f.response.finish(t.typeURL, false, f.version, s.identifier)
	s.recorder.answered(t, f.response.size)
	return f.response, nil
}

// record remembers a fetch.
func (s *fetcher) record(protocol string, m *discoveryv3.DiscoveryRequest, f *fetched, now time.Time) {
	key := poll.Key{Client: poll.Client{ID: brief(m.GetNode().GetId()), Protocol: protocol}, List: f.list}
	if key.ID != "" {
		p := poll.Fetch{
			Key: key, Node: keptNode(m.GetNode()), Choice: f.choice,
			Held: brief(m.GetVersionInfo()), Version: f.version, Contents: f.contents,
		}
		if e := m.GetErrorDetail(); e != nil {
			p.Refusal = &poll.Nack{Text: brief(e.GetMessage()), Nonce: m.GetResponseNonce()}
		}
		if s.polls.Record(&p, now) && f.table.whole {
			s.unasked.expect(askWithin)
		}
	}
}

// contents returns the keys of the answer, and the version of each resource.
func (f *fetched) contents() (keys []string, versions []uint64) {
	keys = f.keys
	if f.list.All {
		keys = make([]string, len(f.slots))
		for i, slot := range f.slots {
			keys[i] = slot.name
		}
	}
	versions = make([]uint64, len(keys))
	found := 0
	for i, key := range keys {
		if found < len(f.slots) && f.slots[found].key(f.byLocator(found)) == key {
			versions[i] = f.frames[found].version
			found++
		}
	}
	return keys, versions
}

func errOtherType(t *table) error {
	return status.Errorf(codes.InvalidArgument,
		"this service is for %s; ask the aggregated service for other types", t.typeURL)
}

func lengthOf(names []string) (bytes int) {
	for _, name := range names {
		bytes += len(name)
	}
	return bytes
}
