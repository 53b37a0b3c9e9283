package eds

import (
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// maxText bounds the kept bytes of a client's text.
const maxText = 1024

func (st *stream) stateRequest(m *discoveryv3.DiscoveryRequest) *request {
	typeURL := st.typeOf(m.GetTypeUrl())
	r := &request{
		node: m.GetNode(), typeURL: typeURL, nonce: m.GetResponseNonce(),
		names: st.server.zoning.keys(typeURL, m.GetResourceNames(), m.GetResourceLocators()),
	}
	if m.GetErrorDetail() != nil {
		r.refusal = newRefusal(m.GetErrorDetail().GetMessage())
	}
	return r
}

// stateMessageRequest returns the request of a message from a stream.
func (st *stream) stateMessageRequest(m *stateMessage) *request {
	if m.isACK {
		return &m.ack
	}
	r := st.stateRequest(m.request)
	r.repeats = m.repeats
	if len(m.request.GetResourceLocators()) == 0 {
		r.span = m.names
		m.shared.addTo(r)
	}
	return r
}

// deltaMessageRequest returns the request of a message from a stream.
func (st *stream) deltaMessageRequest(m *deltaMessage) *request {
	if m.isACK {
		return &m.ack
	}
	r := st.deltaRequest(m.request)
	if len(m.request.GetResourceLocatorsSubscribe()) == 0 {
		m.shared.addTo(r)
	}
	return r
}

func (st *stream) deltaRequest(m *discoveryv3.DeltaDiscoveryRequest) *request {
	typeURL := st.typeOf(m.GetTypeUrl())
	r := &request{
		node: m.GetNode(), typeURL: typeURL, nonce: m.GetResponseNonce(),
		names:       st.server.zoning.keys(typeURL, m.GetResourceNamesSubscribe(), m.GetResourceLocatorsSubscribe()),
		unsubscribe: st.server.zoning.keys(typeURL, m.GetResourceNamesUnsubscribe(), m.GetResourceLocatorsUnsubscribe()),
		versions:    m.GetInitialResourceVersions(),
	}
	if m.GetErrorDetail() != nil {
		r.refusal = newRefusal(m.GetErrorDetail().GetMessage())
	}
	return r
}

// typeOf returns the type of a request; a stream of one type implies it.
func (st *stream) typeOf(typeURL string) string {
	if st.table != nil && typeURL == "" {
		return st.table.typeURL
	}
	return typeURL
}

// brief cuts a client's text that is too long, and makes it valid UTF-8.
func brief(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return strings.Clone(strings.ToValidUTF8(text, "?"))
}

// features are the capabilities that a client's node claims.
type features struct {
	envoy    bool
	ttl      bool // Resource.ttl
	wrapped  bool // a Resource in a state-of-the-world response
	gRPC     bool // forms of gRPC's clients, see complete
	locality *corev3.Locality
}

// featuresOf reads the client features of the protocol. Two clients do not list theirs
// and are known by their names: Envoy unwraps resources and understands ttl. gRPC has
// resource_errors, for which there is no feature, and needs localities with names and weights.
func featuresOf(n *corev3.Node) features {
	envoy := n.GetUserAgentName() == "envoy"
	supports := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(n.GetClientFeatures(), name) })
	}
	return features{
		envoy: envoy,
		ttl:   envoy || supports("xds.config.supports-resource-ttl"),
		// The protocol's documents spell it both ways.
		wrapped:  envoy || supports("xds.config.resource-in-sotw", "xds.config.supports-resource-in-sotw"),
		gRPC:     strings.HasPrefix(n.GetUserAgentName(), "gRPC"),
		locality: localityOf(n),
	}
}

// localityOf returns region and zone of a client's node, or nil if they are longer than those of
// any checker: no zone has such health, and the memory for a client stays small.
func localityOf(n *corev3.Node) *corev3.Locality {
	locality := n.GetLocality()
	if locality == nil || len(locality.GetRegion())+len(locality.GetZone()) > maxText {
		return nil
	}
	return &corev3.Locality{Region: locality.GetRegion(), Zone: locality.GetZone()}
}
