package check

import (
	"crypto/tls"
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rawv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	tlsName = "envoy.transport_sockets.tls"
	rawName = "envoy.transport_sockets.raw_buffer"
)

// sockets are a cluster's transport sockets in the order of their match; plaintext is
// the last.
type sockets []socket

type socket struct {
	labels *structpb.Struct
	tls    *tls.Config // nil is plaintext
}

func parseSockets(matches []*clusterv3.Cluster_TransportSocketMatch) (sockets, error) {
	var list sockets
	for i, m := range matches {
		s := socket{labels: m.GetMatch()}
		var err error
		if s.tls, err = parseSocketConfig(m.GetTransportSocket()); err != nil {
			return nil, fmt.Errorf("transport_socket_matches[%d] %q: %w", i, m.GetName(), err)
		}
		list = append(list, s)
	}
	return list, nil
}

func parseSocketConfig(t *corev3.TransportSocket) (*tls.Config, error) {
	packed := t.GetTypedConfig()
	switch {
	case packed.MessageIs(&tlsv3.UpstreamTlsContext{}):
		var context tlsv3.UpstreamTlsContext
		if err := packed.UnmarshalTo(&context); err != nil {
			return nil, err
		}
		return tlsClient(&context)
	case packed.MessageIs(&rawv3.RawBuffer{}), packed == nil && t.GetName() == rawName:
		return nil, nil
	default:
		return nil, fmt.Errorf("transport socket %q of type %q is not supported; this checker has %s and %s", t.GetName(), packed.GetTypeUrl(), tlsName, rawName)
	}
}

// choose returns the first socket whose labels are all in the criteria.
func (s sockets) choose(criteria *structpb.Struct) *tls.Config {
	for _, socket := range s {
		if hasAll(criteria, socket.labels) {
			return socket.tls
		}
	}
	return nil
}

func hasAll(present, want *structpb.Struct) bool {
	for key, value := range want.GetFields() {
		if other, ok := present.GetFields()[key]; !ok || !proto.Equal(value, other) {
			return false
		}
	}
	return true
}

// setSocket sets the socket of a check. A Redis check uses the socket without criteria and
// ignores tls_options, because Envoy connects as for traffic. The scheme in requests is
// of that socket, too.
func (s *checkSpec) setSocket(h *corev3.HealthCheck, sockets sockets) {
	s.tls = sockets.choose(nil)
	s.https = s.tls != nil
	if s.redis != nil {
		return
	}
	if h.GetTransportSocketMatchCriteria() != nil {
		s.tls = sockets.choose(h.GetTransportSocketMatchCriteria())
	}
	if names := h.GetTlsOptions().GetAlpnProtocols(); len(names) > 0 && s.tls != nil {
		s.tls = s.tls.Clone()
		s.tls.NextProtos = names
	}
}
