package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/config"
)

// TestWhereCheckersTakeSecretsFrom: what no checker takes is refused, and what not every
// checker may have is warned of.
func TestWhereCheckersTakeSecretsFrom(t *testing.T) {
	for text, want := range map[string]string{
		`{api_config_source: {api_type: GRPC, grpc_services: [{envoy_grpc: {cluster_name: sds}}]}}`:       "",
		`{api_config_source: {api_type: DELTA_GRPC, grpc_services: [{envoy_grpc: {cluster_name: sds}}]}}`: "",
		`{ads: {}}`: "warning: needs ads_config in the bootstrap of every checker",
		`{path_config_source: {path: /etc/s.yaml}}`: "warning: is a path: an Envoy takes only one secret from a file",
		`{path_config_source: {path: s.yaml}}`:      `"s.yaml" is relative`,
		`{self: {}}`:                                "is not possible",
		`{}`:                                        "is missing: give one of",
		`{ads: {}, resource_api_version: V2}`:       "names V2",
		`{ads: {}, authorities: [{name: a}]}`:       "authorities: is for names of the form xdstp://",
		`{api_config_source: {api_type: REST, grpc_services: [{envoy_grpc: {cluster_name: sds}}]}}`:              "api_type: is REST",
		`{api_config_source: {api_type: GRPC, grpc_services: [{google_grpc: {target_uri: x, stat_prefix: x}}]}}`: "grpc_services: needs one server",
	} {
		file := write(t, t.TempDir(), "hdsd.yaml", "sources: [{name: local, config_source: {path: .}}]\ncheckers: {sds_config: "+text+"}\n")
		cfg, problems := config.Load(file)
		var said []string
		for _, p := range problems {
			line := strings.TrimPrefix(p.String(), file+":2: checkers.sds_config")
			line = strings.TrimLeft(strings.TrimPrefix(line, filepath.Base(file)), ".: ")
			for _, kind := range []string{"ads: ", "api_config_source."} {
				line = strings.TrimPrefix(line, kind)
			}
			if p.Warning {
				line = "warning: " + line
			}
			said = append(said, line)
		}
		if got := strings.Join(said, "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
		if cfg == nil {
			continue
		}
		if from := config.SDSConfig(cfg); from.GetResourceApiVersion() != corev3.ApiVersion_V3 ||
			from.GetApiConfigSource() != nil && from.GetApiConfigSource().GetTransportApiVersion() != corev3.ApiVersion_V3 {
			t.Errorf("%s: sent as %v", text, from)
		}
	}
}
