package hds

import (
	"context"
	"errors"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/access"
	"hdsd/internal/caller"
	"hdsd/internal/gate"
)

// NodeHeader is the gRPC metadata or HTTP header that says whose a fetched
// report is.
const NodeHeader = "x-hdsd-node-id"

// query is one fetch.
type query struct {
	from    caller.Caller
	permit  access.Permit
	nodes   []string // values of NodeHeader
	v2      bool
	message []byte // as it came
}

func queryOf(ctx context.Context, message []byte) *query {
	return &query{from: caller.FromContext(ctx), permit: access.FromContext(ctx), nodes: metadata.ValueFromIncomingContext(ctx, NodeHeader), message: message}
}

// fetch answers a checker that has no stream with its specifier. A node that fetches is
// connected until three intervals after its last fetch. NodeHeader says whose report it
// is. The report must come with a certificate of the same names as that node's fetches
// or, without one, from the same address.
func (s *Server) fetch(ctx context.Context, q *query) (*healthv3.HealthCheckSpecifier, error) {
	if !s.gate.Enter() {
		return nil, gate.ErrClosing
	}
	defer s.gate.Leave()
	s.metrics.fetches.Inc()
	if !isFirst(q.message) {
		return s.fetchWithReport(ctx, q)
	}
	who, err := introduce(q.message)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if err := q.permit.Admit(nodeOf(&who.checker)); err != nil {
		return nil, err
	}
	for {
		one, err := s.sessionOf(&who, q)
		if err != nil {
			return nil, err
		}
		spec, err := one.fetch(ctx, &call{ctx: ctx})
		if !errors.Is(err, errLapsed) {
			return spec, err
		}
	}
}

// isFirst reports whether a message has a first message, and no report after it.
func isFirst(message []byte) (first bool) {
	eachBytes(message, func(number protowire.Number, _ []byte) bool {
		first = number == messageRequest || first && number != messageReport
		return true
	})
	return first
}

// sessionOf gives the session of a checker that fetches. It is a new one if there
// is none, or the checker changes to the other version of the API. While another
// checker has the id it refuses at once: a checker that fetches asks again.
func (s *Server) sessionOf(who *introduction, q *query) (*session, error) {
	from := origin{who.node, q.from, q.permit}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.door.admits(who.checker.ID, &from.Caller); err != nil {
		return nil, s.turnAway(who.checker.ID, &from.Caller, err)
	}
	if old := s.sessions[who.checker.ID]; old != nil && !old.ending {
		same := old.calls != nil && old.origin.is(from) && sameChecker(&old.checker, &who.checker)
		switch {
		case same && old.v2 == q.v2:
			return old, nil
		case !same && !takesBack(from, old.origin, &who.checker) && s.now() < old.keepsIDUntil():
			return nil, s.refuse(who.checker.ID, from.Host(), old)
		}
	}
	one := s.newSession()
	one.calls, one.v2 = make(chan *call), q.v2
	one.checker, one.node, one.origin = who.checker, who.kept, from
	one.checker.Identity = from.Identity
	if err := s.admit(one); err != nil {
		return nil, err
	}
	s.gate.Go(one.answerFetches)
	return one, nil
}

// fetchWithReport takes a report of the node that NodeHeader names.
func (s *Server) fetchWithReport(ctx context.Context, q *query) (*healthv3.HealthCheckSpecifier, error) {
	one, err := s.reporter(q)
	if err == nil {
		err = q.permit.Admit(nodeOf(&one.checker))
	}
	if err != nil {
		s.metrics.unbound.Inc()
		return nil, err
	}
	spec, err := one.fetch(ctx, &call{ctx: ctx, isReport: true, report: q.message})
	if errors.Is(err, errLapsed) {
		return nil, notFetched(one.checker.ID)
	}
	return spec, err
}

// reporter gives the session of the checker that a report belongs to.
func (s *Server) reporter(q *query) (*session, error) {
	if len(q.nodes) != 1 || q.nodes[0] == "" {
		return nil, status.Error(codes.Unauthenticated,
			"nobody knows whose report this is: name the node that fetches in "+NodeHeader+" (gRPC metadata or HTTP header), once; or send health_check_request")
	}
	id := q.nodes[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[id]
	switch {
	case one == nil || one.calls == nil || one.ending:
		return nil, notFetched(id)
	case one.origin.Fingerprint() != q.from.Fingerprint():
		return nil, status.Errorf(codes.Unauthenticated, "node %q fetches with another client certificate: send its reports with one of the same subject and alternative names", id)
	case !one.origin.Is(q.from):
		return nil, status.Errorf(codes.Unauthenticated, "node %q fetches from %s, this report came from %s: send both from one address, or with a client certificate", id, one.origin.Host(), q.from.Host())
	case one.v2 != q.v2:
		return nil, status.Errorf(codes.FailedPrecondition, "node %q fetches by the other version of the API: report by the same", id)
	}
	return one, nil
}

func notFetched(id string) error {
	return status.Errorf(codes.FailedPrecondition,
		"node %q has not fetched within three intervals: fetch with health_check_request (node and capability) first, then report", id)
}
