package specifier

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
)

// takeSDS removes the sources of secrets that only data planes can use, if checkers have another
// one. The rest is reviewed without them.
func (r *review) takeSDS(m proto.Message) {
	socket, ok := m.(*tlsv3.UpstreamTlsContext)
	if !ok || r.options.SDSConfig == nil {
		return
	}
	common := socket.GetCommonTlsContext()
	configs := append(slices.Clip(common.GetTlsCertificateSdsSecretConfigs()),
		common.GetValidationContextSdsSecretConfig(),
		common.GetCombinedValidationContext().GetValidationContextSdsSecretConfig())
	r.replaced = make(map[*tlsv3.SdsSecretConfig]bool, len(configs))
	for _, secret := range configs {
		switch secret.GetSdsConfig().GetConfigSourceSpecifier().(type) {
		case *corev3.ConfigSource_Ads, *corev3.ConfigSource_Self, *corev3.ConfigSource_Path, *corev3.ConfigSource_PathConfigSource:
			secret.SdsConfig = nil
			r.replaced[secret] = true
		}
	}
}

// giveSDS puts the checkers' own source in their place.
func (r *review) giveSDS() {
	for secret := range r.replaced {
		secret.SdsConfig = r.options.SDSConfig
	}
	r.replaced = nil
}

func ruleSecret(r *review, path string, s *tlsv3.SdsSecretConfig) {
	r.need(secretDiscovery)
	all := r.replaced[s] && len(r.options.SDSSecrets) == 0
	switch {
	case all && s.GetName() == "":
		r.problem(join(path, "name"), "is missing")
	case !all && !r.options.SDSSecrets[s.GetName()]:
		r.problem(join(path, "name"), "the configuration does not say that checkers can get the secret %q, and one that cannot finds the endpoint unhealthy; add it to checkers.sds_secrets", clip(s.GetName()))
	}
}
