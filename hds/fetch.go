package hds

import (
	"context"
	"errors"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"hdsd/envoy/fields"
	"hdsd/internal/gate"
	"hdsd/peer"
	"hdsd/peer/access"
)

// NodeHeader is the gRPC metadata or HTTP header with the node id of a fetched report.
const NodeHeader = "x-hdsd-node-id"

// query is one fetch.
type query struct {
	caller  peer.Caller
	permit  access.Permit
	nodes   []string // values of NodeHeader
	v2      bool
	message []byte // as received
}

func queryOf(ctx context.Context, message []byte) *query {
	return &query{caller: peer.FromContext(ctx), permit: access.FromContext(ctx), nodes: metadata.ValueFromIncomingContext(ctx, NodeHeader), message: message}
}

// fetch answers a checker without a stream with its specifier. A node that fetches is connected
// until three intervals after its last fetch. NodeHeader names the node of a report. The report
// must come with a certificate of the same names as that node's fetches or, without one, from
// the same address.
func (s *Server) fetch(ctx context.Context, q *query) (*healthv3.HealthCheckSpecifier, error) {
	if !s.gate.Enter() {
		return nil, gate.ErrClosing
	}
	defer s.gate.Leave()
	s.metrics.fetches.Inc()
	if !isFirst(q.message) {
		return s.fetchWithReport(ctx, q)
	}
	intro, err := introduce(q.message)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if err := q.permit.Admit(nodeOf(&intro.checker)); err != nil {
		return nil, err
	}
	for {
		session, err := s.sessionOf(&intro, q)
		if err != nil {
			return nil, err
		}
		spec, err := session.fetch(ctx, &call{ctx: ctx})
		if !errors.Is(err, errLapsed) {
			return spec, err
		}
	}
}

// isFirst reports whether a message has a first message, and no report after it.
func isFirst(message []byte) (first bool) {
	for f := range fields.All(message) {
		first = f.Is(messageRequest) || first && !f.Is(messageReport)
	}
	return first
}

// sessionOf returns the session of a checker that fetches. It makes one if there is none, or the
// checker changes the version of the API. While another checker has the id it refuses at once: a
// checker that fetches asks again.
func (s *Server) sessionOf(intro *introduction, q *query) (*session, error) {
	fetchOrigin := origin{intro.node, q.caller, q.permit}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.door.admits(intro.checker.ID, &fetchOrigin.Caller); err != nil {
		return nil, s.turnAway(intro.checker.ID, &fetchOrigin.Caller, err)
	}
	if old := s.sessions[intro.checker.ID]; old != nil && !old.ending {
		same := old.calls != nil && old.origin.equals(fetchOrigin) && sameChecker(&old.checker, &intro.checker)
		switch {
		case same && old.v2 == q.v2:
			return old, nil
		case !same && !takesBack(fetchOrigin, old.origin, &intro.checker) && s.now() < old.keepsIDUntil():
			return nil, s.refuse(intro.checker.ID, fetchOrigin.Host(), old)
		}
	}
	session := s.newSession()
	session.calls, session.v2 = make(chan *call), q.v2
	session.checker, session.node, session.origin = intro.checker, intro.kept, fetchOrigin
	session.checker.Identity = fetchOrigin.Identity
	if err := s.admit(session); err != nil {
		return nil, err
	}
	s.gate.Go(session.answerFetches)
	return session, nil
}

// fetchWithReport handles a report of the node named by NodeHeader.
func (s *Server) fetchWithReport(ctx context.Context, q *query) (*healthv3.HealthCheckSpecifier, error) {
	session, err := s.reporter(q)
	if err == nil {
		err = q.permit.Admit(nodeOf(&session.checker))
	}
	if err != nil {
		s.metrics.unbound.Inc()
		return nil, err
	}
	spec, err := session.fetch(ctx, &call{ctx: ctx, isReport: true, report: q.message})
	if errors.Is(err, errLapsed) {
		return nil, notFetched(session.checker.ID)
	}
	return spec, err
}

// reporter returns the session of a report's checker.
func (s *Server) reporter(q *query) (*session, error) {
	if len(q.nodes) != 1 || q.nodes[0] == "" {
		return nil, status.Error(codes.Unauthenticated,
			"nobody knows whose report this is: name the node that fetches in "+NodeHeader+" (gRPC metadata or HTTP header), once; or send health_check_request")
	}
	id := q.nodes[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.sessions[id]
	switch {
	case session == nil || session.calls == nil || session.ending:
		return nil, notFetched(id)
	case session.origin.Fingerprint() != q.caller.Fingerprint():
		return nil, status.Errorf(codes.Unauthenticated, "node %q fetches with another client certificate: send its reports with one of the same subject and alternative names", id)
	case !session.origin.Is(q.caller):
		return nil, status.Errorf(codes.Unauthenticated, "node %q fetches from %s, this report came from %s: send both from one address, or with a client certificate", id, session.origin.Host(), q.caller.Host())
	case session.v2 != q.v2:
		return nil, status.Errorf(codes.FailedPrecondition, "node %q fetches by the other version of the API: report by the same", id)
	}
	return session, nil
}

func notFetched(id string) error {
	return status.Errorf(codes.FailedPrecondition,
		"node %q has not fetched within three intervals: fetch with health_check_request (node and capability) first, then report", id)
}
