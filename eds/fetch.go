package eds

import (
	"context"
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/gate"
)

// atOnce is how many fetches are worked on at a time; others wait.
const atOnce = 2

// fetched is the answer to a fetch: what there is of what was asked for, by
// name. Its version is that of the content, and its nonce too, so that none of it
// depends on who fetches, or on what that one was told before.
type fetched struct {
	selection
	table    *table
	asked    []string // sorted; none: everything
	choice   string   // of the variant where none was asked for
	version  string
	frames   []*frame // of the slots
	response *response
}

// fetch takes each request for itself: where it names nothing, or "*", it means
// everything.
func (s *Server) fetch(t *table, m *discoveryv3.DiscoveryRequest) (*fetched, error) {
	if asked := m.GetTypeUrl(); asked != "" && asked != t.typeURL {
		return nil, errOtherType(t)
	}
	names, err := s.asked(t, m)
	if err != nil {
		return nil, err
	}
	s.metrics.fetches.WithLabelValues(t.typeURL).Inc()
	if e := m.GetErrorDetail(); e != nil {
		s.refused(t, brief(m.GetNode().GetId()), brief(e.GetMessage()))
	}
	incomplete := s.incomplete.Load() // before it is seen what there is
	f := &fetched{table: t, asked: names, choice: s.choiceAt(t, m.GetNode().GetLocality()), response: newResponse()}
	all := s.find(t, names, f.choice)
	f.slots, f.frames = make([]*slot, 0, len(all.slots)), make([]*frame, 0, len(all.slots))
	f.response.parts = slices.Grow(f.response.parts, len(all.slots)+1) // and the tail
	for i, slot := range all.slots {
		frame := slot.latest()
		if frame == nil {
			continue
		}
		f.slots, f.frames = append(f.slots, slot), append(f.frames, frame)
		if all.located != nil {
			f.located = append(f.located, all.located[i])
		}
		f.response.pick(slot, all.byLocator(i), frame)
	}
	if incomplete && !t.knows(names, len(f.frames)) {
		return nil, errIncomplete
	}
	f.version = formatVersion(f.response.digest.Sum64())
	return f, nil
}

// asked gives the names that a fetch is for, sorted; none where it is for
// everything.
func (s *Server) asked(t *table, m *discoveryv3.DiscoveryRequest) ([]string, error) {
	names := s.withLocators(t.typeURL, m.GetResourceNames(), m.GetResourceLocators())
	slices.Sort(names)
	names = slices.Compact(names)
	if err := s.limits().check(len(names), lengthOf(names)); err != nil {
		return nil, err
	}
	if slices.Contains(names, everything) {
		return nil, nil
	}
	return names, nil
}

// known tells whether whoever sent the request has the answer already, or has
// refused it.
func (f *fetched) known(m *discoveryv3.DiscoveryRequest) bool {
	return m.GetVersionInfo() == f.version || m.GetErrorDetail() != nil && m.GetResponseNonce() == f.version
}

// turn waits until a fetch may be worked on.
func (s *Server) turn(ctx context.Context) (done func(), err error) {
	select {
	case <-s.gate.Closing(): // even if there is a turn
		return nil, gate.ErrClosing
	default:
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

// fetchable gives the description of a service whose fetch answers with shared
// frames, which the generated one has no type for.
func (s *Server) fetchable(service grpc.ServiceDesc, method string, t *table) *grpc.ServiceDesc {
	info := grpc.UnaryServerInfo{FullMethod: "/" + service.ServiceName + "/" + method}
	answer := func(ctx context.Context, m any) (any, error) {
		return s.answer(ctx, t, m.(*discoveryv3.DiscoveryRequest))
	}
	service.Methods = []grpc.MethodDesc{{
		MethodName: method,
		Handler: func(server any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			m := new(discoveryv3.DiscoveryRequest)
			if err := s.decode(decode, m); err != nil {
				return nil, err
			}
			if intercept == nil {
				return answer(ctx, m)
			}
			called := info
			called.Server = server
			return intercept(ctx, m, &called, answer)
		},
	}}
	return &service
}

// list identifies what was asked for.
func (f *fetched) list() givenList {
	return givenList{f.table, len(f.asked) == 0, hashOf(f.asked)}
}

// answer is that to a fetch over gRPC: always the whole, since gRPC has no way
// to say that nothing has changed.
func (s *Server) answer(ctx context.Context, t *table, m *discoveryv3.DiscoveryRequest) (any, error) {
	done, err := s.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	f, err := s.fetch(t, m)
	if err != nil {
		return nil, err
	}
	s.notePoll(ByFetch, m, f, time.Now())
	f.response.finish(t.typeURL, false, f.version, s.identifier)
	s.metrics.bytes.WithLabelValues(t.typeURL).Add(float64(f.response.size))
	return f.response, nil
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
