package hds

import (
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

	"hdsd/hds/specifier"
	"hdsd/health"
	"hdsd/internal/gate"
)

// What a checker may say of itself: the size of its id, and of its node. An
// Envoy's node has some 50 kB, and its metadata are kept.
const (
	maxNodeID    = 1024
	maxNodeTaken = 1 << 20
)

// origin is what the fetches of one checker have in common.
type origin struct {
	node [sha256.Size]byte // its cluster, locality and metadata
	caller
}

func (o origin) is(other origin) bool { return o.node == other.node && o.caller.is(other.caller) }

// introduction is a first message, understood.
type introduction struct {
	checker health.Checker
	node    [sha256.Size]byte
	kept    *corev3.Node
}

// introduce reads a first message; its errors are for the peer.
func introduce(message []byte) (introduction, error) {
	var m healthv3.HealthCheckRequestOrEndpointHealthResponse
	if err := proto.Unmarshal(message, &m); err != nil {
		return introduction{}, fmt.Errorf("the first message is not a HealthCheckRequestOrEndpointHealthResponse: %w", err)
	}
	return introducedBy(&m)
}

// introducedBy is introduce for a decoded message, whose node is used up.
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

// sameChecker tells whether nothing about a checker changed.
func sameChecker(a, b *health.Checker) bool {
	return a.ID == b.ID && a.Locality == b.Locality && a.Version == b.Version &&
		maps.Equal(a.Abilities, b.Abilities) && maps.Equal(a.Metadata, b.Metadata)
}

// seat makes st the stream of its checker; mu is held. What it replaces is left
// in st.before.
func (s *Server) seat(st *stream) error {
	if s.gate.Closed() {
		return gate.ErrClosing
	}
	id := st.checker.ID
	if old := s.streams[id]; old != nil {
		if !old.ending {
			old.replaced = true
			st.warned = old.warned
			s.metrics.replaced.Inc()
			old.stop(status.Errorf(codes.Aborted, "node id %q came again, from %s, and takes the place of this stream, on which nothing was heard for %s",
				id, st.origin.host, old.silence().Round(time.Millisecond)))
		}
		st.before = old
	}
	if specifier.IgnoresWeight(st.node) {
		s.options.Log.Warn().Str("event", "weight_ignored").Str("checker", id).
			Msg("the hdsd.weight in node.metadata is no number above 0: the checker has the weight 1, unless the configuration gives it another")
	}
	st.heard.Store(s.now())
	st.free.Store(busy)
	s.streams[id] = st
	s.metrics.streams.Set(float64(len(s.streams)))
	return nil
}

// leave takes st out and tells the sink, unless another has taken its place.
// The name stays taken until the sink knows, so that calls keep their order.
func (s *Server) leave(st *stream) {
	s.mu.Lock()
	replaced := st.replaced
	st.ending = !replaced
	s.mu.Unlock()
	if replaced {
		return
	}
	s.sink.Disconnected(st.checker.ID)
	s.mu.Lock()
	if s.streams[st.checker.ID] == st {
		delete(s.streams, st.checker.ID)
	}
	s.metrics.streams.Set(float64(len(s.streams)))
	s.mu.Unlock()
}
