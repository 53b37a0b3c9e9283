package specifier

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// TestSecretsThatCheckersCannotFollow are taken from where the configuration says; what
// names a cluster of the checkers' bootstrap stays.
func TestSecretsThatCheckersCannotFollow(t *testing.T) {
	const (
		own  = `resource_api_version: V3 api_config_source {api_type: GRPC transport_api_version: V3 grpc_services {envoy_grpc {cluster_name: "own"}}}`
		ads  = `resource_api_version: V3 ads {}`
		path = `path_config_source {path: "/etc/secret.yaml"}`
	)
	from := parse(t, `resource_api_version: V3 api_config_source {api_type: DELTA_GRPC transport_api_version: V3 grpc_services {envoy_grpc {cluster_name: "sds"}}}`, &corev3.ConfigSource{})
	certificate := func(name, source string) string {
		return `tls_certificate_sds_secret_configs {name: "` + name + `" sds_config {` + source + `}} `
	}
	authority := func(name, source string) string {
		return `validation_context_sds_secret_config {name: "` + name + `" sds_config {` + source + `}}`
	}
	for _, one := range []struct {
		name, context string
		options       Options
		want          string // empty: it is as given, with the replacements
		problem       string
	}{
		{"ads without a replacement", authority("ca", ads), Options{SDSSecrets: map[string]bool{"ca": true}}, "", "set checkers.sds_config"},
		{"a path without a replacement", authority("ca", path), Options{SDSSecrets: map[string]bool{"ca": true}}, "", "a checker may not have this file; set checkers.sds_config"},
		{"ads", authority("ca", ads), Options{SDSConfig: from}, authority("ca", prototext.MarshalOptions{}.Format(from)), ""},
		{"the older path", authority("ca", `path: "/x"`), Options{SDSConfig: from}, authority("ca", prototext.MarshalOptions{}.Format(from)), ""},
		{"self", authority("ca", `self {}`), Options{SDSConfig: from}, authority("ca", prototext.MarshalOptions{}.Format(from)), ""},
		{"two secrets", certificate("pair", path) + authority("ca", ads), Options{SDSConfig: from}, certificate("pair", prototext.MarshalOptions{}.Format(from)) + authority("ca", prototext.MarshalOptions{}.Format(from)), ""},
		{
			"combined", `combined_validation_context {default_validation_context {match_typed_subject_alt_names {san_type: DNS matcher {exact: "a"}}} ` + authority("ca", ads) + `}`,
			Options{SDSConfig: from, SDSSecrets: map[string]bool{"ca": true}},
			`combined_validation_context {default_validation_context {match_typed_subject_alt_names {san_type: DNS matcher {exact: "a"}}} ` + authority("ca", prototext.MarshalOptions{}.Format(from)) + `}`, "",
		},
		{"its own cluster", authority("ca", own), Options{SDSConfig: from, SDSSecrets: map[string]bool{"ca": true}}, authority("ca", own), ""},
		{"its own cluster, not listed", authority("ca", own), Options{SDSConfig: from}, "", "add it to checkers.sds_secrets"},
		{"one that the list lacks", authority("other", ads), Options{SDSConfig: from, SDSSecrets: map[string]bool{"ca": true}}, "", "add it to checkers.sds_secrets"},
		{"no name", authority("", ads), Options{SDSConfig: from}, "", "name: is missing"},
	} {
		t.Run(one.name, func(t *testing.T) {
			packed, err := anypb.New(&tlsv3.UpstreamTlsContext{CommonTlsContext: parse(t, one.context, &tlsv3.CommonTlsContext{})})
			if err != nil {
				t.Fatal(err)
			}
			socket := &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed}}
			got := Translate("web", &clusterv3.Cluster{TransportSocket: socket}, assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`),
				[]*corev3.HealthCheck{check(t, `tcp_health_check {}`)}, one.options)
			if one.problem != "" {
				if len(got.Excluded) != 1 || !strings.Contains(got.Excluded[0].Reason, one.problem) {
					t.Errorf("excluded: %+v, want %q", got.Excluded, one.problem)
				}
				return
			}
			if len(got.Endpoints) != 1 {
				t.Fatalf("excluded: %+v", got.Excluded)
			}
			sent := &tlsv3.UpstreamTlsContext{}
			match := specifierOf(got).Message().GetClusterHealthChecks()[0].GetTransportSocketMatches()[0]
			if err := match.GetTransportSocket().GetTypedConfig().UnmarshalTo(sent); err != nil {
				t.Fatal(err)
			}
			if want := parse(t, one.want, &tlsv3.CommonTlsContext{}); !proto.Equal(sent.GetCommonTlsContext(), want) {
				t.Errorf("got %v, want %v", sent.GetCommonTlsContext(), want)
			}
		})
	}
}

// TestOptionsAreCompared by what they say.
func TestOptionsAreCompared(t *testing.T) {
	from := func(cluster string) Options {
		return Options{Files: map[string]bool{"/a": true}, SDSConfig: parse(t, `api_config_source {grpc_services {envoy_grpc {cluster_name: "`+cluster+`"}}}`, &corev3.ConfigSource{})}
	}
	used := from("a")
	_ = used.SDSConfig.String()
	if !used.Equal(from("a")) || used.Equal(from("b")) || used.Equal(Options{Files: map[string]bool{"/a": true}}) {
		t.Error("equal and different options are not told apart")
	}
}
