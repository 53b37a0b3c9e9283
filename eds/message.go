package eds

import (
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// Most bytes kept of a text that a client sent.
const maxText = 1024

func (st *stream) stateRequest(m *discoveryv3.DiscoveryRequest) *request {
	typeURL := st.typeOf(m.GetTypeUrl())
	r := &request{
		node: m.GetNode(), typeURL: typeURL, nonce: m.GetResponseNonce(),
		names: st.server.zoning.keys(typeURL, m.GetResourceNames(), m.GetResourceLocators()),
	}
	if m.GetErrorDetail() != nil {
		r.refusal = new(brief(m.GetErrorDetail().GetMessage()))
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
		r.refusal = new(brief(m.GetErrorDetail().GetMessage()))
	}
	return r
}

// typeOf gives the type that a request is about; a stream of one type implies it.
func (st *stream) typeOf(asked string) string {
	if st.only != nil && asked == "" {
		return st.only.typeURL
	}
	return asked
}

// brief bounds what is kept of a client's text.
func brief(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return strings.Clone(strings.ToValidUTF8(text, "?"))
}

// features are what a client says of itself in its node.
type features struct {
	envoy   bool
	ttl     bool // it heeds Resource.ttl
	wrapped bool // it takes a Resource in a state-of-the-world response
	errors  bool // it heeds resource_errors
	at      *corev3.Locality
}

// featuresOf goes by the client features of the protocol, and by the names of
// two clients that do not list what they are able to do: Envoy unwraps and
// heeds ttl, gRPC heeds resource_errors, for which there is no feature.
func featuresOf(n *corev3.Node) features {
	envoy := n.GetUserAgentName() == "envoy"
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(n.GetClientFeatures(), name) })
	}
	return features{
		envoy: envoy,
		ttl:   envoy || has("xds.config.supports-resource-ttl"),
		// The protocol's documents spell it both ways.
		wrapped: envoy || has("xds.config.resource-in-sotw", "xds.config.supports-resource-in-sotw"),
		errors:  strings.HasPrefix(n.GetUserAgentName(), "gRPC"),
		at:      n.GetLocality(),
	}
}
