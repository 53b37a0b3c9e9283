package specifier

import (
	"fmt"
	"strconv"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	rawv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/health"
)

const (
	matchKey = "envoy.transport_socket_match" // in metadata
	tlsName  = "envoy.transport_sockets.tls"
	rawName  = "envoy.transport_sockets.raw_buffer"
)

// sockets are the transport sockets of a cluster's endpoints. The package chooses the
// socket of each check as the data plane would, so that a specifier has only the
// result.
type sockets struct {
	list    []*socket // those of the matches in order, then the cluster's own
	matches []*clusterv3.Cluster_TransportSocketMatch
}

// socket is one reviewed transport socket.
type socket struct {
	wire  *corev3.TransportSocket // nil: plain
	needs map[health.Ability]bool
	wrong string // reason why it is unusable
}

// reviewSockets reviews all sockets of a cluster. A faulty one counts only if it is
// used.
func reviewSockets(c *clusterv3.Cluster, o Options) *sockets {
	s := &sockets{matches: c.GetTransportSocketMatches()}
	for i, match := range s.matches {
		s.list = append(s.list, reviewSocket(fmt.Sprintf("transport_socket_matches[%d].transport_socket", i), match.GetTransportSocket(), o))
	}
	clusterSocket := &socket{}
	if c.GetTransportSocket() != nil {
		clusterSocket = reviewSocket("transport_socket", c.GetTransportSocket(), o)
	}
	s.list = append(s.list, clusterSocket)
	return s
}

func reviewSocket(path string, t *corev3.TransportSocket, o Options) *socket {
	r := &review{options: o}
	result := &socket{}
	packed := t.GetTypedConfig()
	switch packed.MessageName() {
	case (&tlsv3.UpstreamTlsContext{}).ProtoReflect().Descriptor().FullName():
		if clean := r.unpack(join(path, "typed_config"), packed, &tlsv3.UpstreamTlsContext{}); clean != nil {
			result.wire = &corev3.TransportSocket{Name: tlsName, ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: clean}}
			r.need(tlsName)
		}
	case (&rawv3.RawBuffer{}).ProtoReflect().Descriptor().FullName(): // same as no socket
	case "":
		if t.GetName() != rawName {
			r.problem(join(path, "typed_config"), "is missing")
		}
	default:
		r.problem(path, "%s is no socket that hdsd can hand to a checker; only TLS and raw_buffer are", clip(string(packed.MessageName())))
	}
	if len(t.ProtoReflect().GetUnknown()) > 0 {
		r.problem(path, "holds a field that this release of hdsd does not know")
	}
	result.needs, result.wrong = r.needs, r.reason()
	return result
}

// resolve returns the number of an endpoint's socket, chosen as in Envoy: by the
// check's criteria or else the endpoint's metadata, then the locality's metadata, then
// the cluster's own.
func (s *sockets) resolve(criteria *structpb.Struct, e *endpointv3.LbEndpoint, l *endpointv3.LocalityLbEndpoints) int {
	if len(s.matches) == 0 {
		return 0
	}
	if criteria == nil {
		criteria = e.GetMetadata().GetFilterMetadata()[matchKey]
	}
	if i, ok := s.match(criteria); ok {
		return i
	}
	if i, ok := s.match(l.GetMetadata().GetFilterMetadata()[matchKey]); ok {
		return i
	}
	return len(s.matches)
}

func (s *sockets) match(labels *structpb.Struct) (int, bool) {
	for i, match := range s.matches {
		if matchesAll(match.GetMatch(), labels) {
			return i, true
		}
	}
	return 0, false
}

func matchesAll(want, present *structpb.Struct) bool {
	for key, value := range want.GetFields() {
		if other, ok := present.GetFields()[key]; !ok || !proto.Equal(value, other) {
			return false
		}
	}
	return true
}

// choice is a key for the sockets of a cluster's checks.
type choice string

func (s *sockets) choose(checks []*corev3.HealthCheck, e *endpointv3.LbEndpoint, l *endpointv3.LocalityLbEndpoints) choice {
	if len(checks) == 1 {
		return choice(strconv.Itoa(s.resolve(checks[0].GetTransportSocketMatchCriteria(), e, l)))
	}
	chosen := make([]string, len(checks))
	for i, check := range checks {
		chosen[i] = strconv.Itoa(s.resolve(check.GetTransportSocketMatchCriteria(), e, l))
	}
	return choice(strings.Join(chosen, ","))
}

// chosen returns the sockets of a choice.
func (s *sockets) chosen(c choice) []*socket {
	var chosen []*socket
	for text := range strings.SplitSeq(string(c), ",") {
		i, _ := strconv.Atoi(text) // written by choose
		chosen = append(chosen, s.list[i])
	}
	return chosen
}
