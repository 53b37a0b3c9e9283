package hds

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/internal/gate"
	"hdsd/peer"
	"hdsd/peer/access"
)

// Limits on a checker's description of itself, in bytes. An Envoy's node has some 50 kB, and
// hdsd keeps its metadata.
const (
	maxNodeID    = 1024
	maxNodeTaken = 1 << 20
)

// origin is common to all fetches of one checker.
type origin struct {
	node [sha256.Size]byte // its cluster, locality and metadata
	peer.Caller
	permit access.Permit
}

func (o origin) equals(other origin) bool { return o.node == other.node && o.Is(other.Caller) }

// owns reports whether a grant binds the checker's node id to the caller.
func (o origin) owns(c *health.Checker) bool { return o.permit.Owns(nodeOf(c)) }

// nodeOf returns a checker's node for package access.
func nodeOf(c *health.Checker) access.Node {
	return access.Node{ID: c.ID, Region: c.Locality.Region, Zone: c.Locality.Zone}
}

// introduction is the content of the first message.
type introduction struct {
	checker health.Checker
	node    [sha256.Size]byte
	kept    *corev3.Node
}

// introduce reads a first message. Its errors are written for the peer.
func introduce(message []byte) (introduction, error) {
	if err := checkFirstFields(message); err != nil {
		return introduction{}, err
	}
	var m healthv3.HealthCheckRequestOrEndpointHealthResponse
	if err := proto.Unmarshal(message, &m); err != nil {
		return introduction{}, fmt.Errorf("the first message is not a HealthCheckRequestOrEndpointHealthResponse: %w", err)
	}
	return introducedBy(&m)
}

// introducedBy is introduce for a decoded message. It changes the node.
func introducedBy(m *healthv3.HealthCheckRequestOrEndpointHealthResponse) (introduction, error) {
	if m.GetEndpointHealthResponse() != nil {
		return introduction{}, errors.New("a report came before the first message: send health_check_request with node and capability first, on every stream")
	}
	node := m.GetHealthCheckRequest().GetNode()
	switch {
	case m.GetHealthCheckRequest() == nil:
		return introduction{}, errors.New("the first message is empty: send health_check_request with node and capability first")
	case node == nil:
		return introduction{}, errors.New("health_check_request has no node: set node.id in the bootstrap, or start Envoy with --service-node")
	case node.GetId() == "":
		return introduction{}, errors.New("the node has no id: set node.id in the bootstrap, or start Envoy with --service-node")
	case len(node.GetId()) > maxNodeID:
		return introduction{}, fmt.Errorf("the node's id has %d bytes: use one of at most %d", len(node.GetId()), maxNodeID)
	}
	if size := proto.Size(node); size > maxNodeTaken {
		return introduction{}, fmt.Errorf("node %q has %d bytes: make its metadata smaller; at most %d are taken", node.GetId(), size, maxNodeTaken)
	}
	nameBuild(node)
	if err := envoy.CheckNode(node); err != nil {
		return introduction{}, err
	}
	checker, err := specifier.CheckerFromNode(node, m.GetHealthCheckRequest().GetCapability())
	if err != nil {
		return introduction{}, fmt.Errorf("node %q: %w", node.GetId(), err)
	}
	if n := len(checker.Version) + len(checker.Locality.Region) + len(checker.Locality.Zone) + len(checker.Locality.SubZone); n > maxNodeID {
		return introduction{}, fmt.Errorf("node %q: its locality and version have %d bytes: use at most %d", node.GetId(), n, maxNodeID)
	}
	lasting := &corev3.Node{Cluster: node.GetCluster(), Locality: node.GetLocality(), Metadata: node.GetMetadata()}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(lasting)
	if err != nil {
		return introduction{}, fmt.Errorf("node %q: %w", node.GetId(), err)
	}
	return introduction{checker, sha256.Sum256(encoded), keptNode(node)}, nil
}

// sameChecker reports whether nothing about a checker has changed.
func sameChecker(a, b *health.Checker) bool {
	return a.ID == b.ID && a.Locality == b.Locality && a.Version == b.Version &&
		maps.Equal(a.Abilities, b.Abilities) && maps.Equal(a.Metadata, b.Metadata)
}

// admit makes session the session of its checker, and stores the replaced one in session.before.
// The caller holds mu.
func (s *Server) admit(session *session) error {
	if s.gate.Closed() {
		return gate.ErrClosing
	}
	id := session.checker.ID
	if err := s.door.enter(time.Now(), id, session.origin.Key()); err != nil {
		return s.turnAway(id, &session.origin.Caller, err)
	}
	if old := s.sessions[id]; old != nil {
		if old.ending {
			close(old.lifetime.followed)
		} else {
			old.replaced = true
			session.warned = old.warned
			s.metrics.replaced.Inc()
			old.lifetime.stop(replacement(session, old))
		}
		session.before = old
	}
	if specifier.IgnoresWeight(session.node) {
		s.options.Log.Warn().Str("event", "weight_ignored").Str("checker", id).
			Msg("the hdsd.weight in node.metadata is no number above 0: the checker has the weight 1, unless the configuration gives it another")
	}
	session.activity.hear()
	session.activity.block(s.now())
	s.sessions[id] = session
	s.metrics.streams.Set(float64(len(s.sessions)))
	return nil
}

// replacement is the error that ends old when session replaces it.
func replacement(session, old *session) error {
	if id := session.checker.ID; takesBack(session.origin, old.origin, &session.checker) {
		return status.Errorf(codes.Aborted, "node id %q belongs to the caller from %s, by a grant, and it takes the place of this stream: use another node.id", id, session.origin.Host())
	}
	return status.Errorf(codes.Aborted, "node id %q came again, from %s, and takes the place of this stream, on which nothing was heard for %s",
		session.checker.ID, session.origin.Host(), old.activity.silence().Round(time.Millisecond))
}

// leave removes a session and tells the sink, unless it was replaced. The node id stays taken
// until the sink knows, so that calls keep their order.
func (s *Server) leave(session *session) {
	s.mu.Lock()
	replaced := session.replaced
	session.ending = !replaced
	s.door.leave(time.Now(), session.checker.ID, session.origin.Key())
	s.mu.Unlock()
	if replaced {
		return
	}
	if s.ended(session) {
		s.sink.Ended(session.checker.ID)
	}
	if s.isFollowed(session) {
		return
	}
	s.sink.Disconnected(session.checker.ID)
	s.mu.Lock()
	if s.sessions[session.checker.ID] == session {
		delete(s.sessions, session.checker.ID)
	}
	s.metrics.streams.Set(float64(len(s.sessions)))
	s.mu.Unlock()
}

// ended reports whether the server itself ended a session. A session whose peer does not read or
// answer ended by itself: its process may hang.
func (s *Server) ended(session *session) bool {
	if session.refused.Load() || s.gate.Closed() {
		return true
	}
	if session.grpc == nil {
		return false
	}
	ctx := session.grpc.Context()
	cause := context.Cause(ctx) // of the access, if that ended it
	withdrawn := cause != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded)
	return withdrawn || s.options.Ended(ctx) || s.options.Planned(session.origin.Address)
}

// isFollowed waits a while for the next stream of a checker whose connection hdsd ended by plan,
// so that its seats stay. It reports whether there is one.
func (s *Server) isFollowed(session *session) bool {
	if session.grpc == nil || !s.options.Planned(session.origin.Address) {
		return false
	}
	timer := time.NewTimer(s.options.PlannedGrace)
	defer timer.Stop()
	select {
	case <-session.lifetime.followed:
		return true
	case <-timer.C:
	case <-s.gate.Closing():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[session.checker.ID] != session
}
