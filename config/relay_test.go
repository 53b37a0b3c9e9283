package config_test

import (
	"strings"
	"testing"
	"time"

	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
)

const controlled = `relay: {upstream: {api_config_source: {api_type: AGGREGATED_DELTA_GRPC, transport_api_version: V3, grpc_services: [{google_grpc: {target_uri: "127.0.0.1:1", stat_prefix: x}}]}}%}`

// TestARelayNeedsNoSources, and what it does without settings.
func TestARelayNeedsNoSources(t *testing.T) {
	c, problems := config.Load(write(t, t.TempDir(), "hdsd.yaml", strings.Replace(controlled, "%", "", 1)))
	if c == nil || len(problems) > 0 {
		t.Fatal(problems)
	}
	r := c.GetRelay()
	if r.GetHealth() != configv1.Relay_ON || r.GetKeep().AsDuration() != 5*time.Minute || r.GetForward() != configv1.Relay_NONE {
		t.Errorf("got %v", r)
	}
}

func TestWrongRelays(t *testing.T) {
	for text, want := range map[string]string{
		"relay: {}":                    "relay.upstream.api_config_source: is required",
		"relay: {keep: 25h}":           "relay.keep: is 90000s",
		"relay: {health: MAYBE}":       "relay.health",
		"relay: {upstream: {ads: {}}}": "ads",
		`relay: {upstream: {api_config_source: {api_type: REST, transport_api_version: V3, refresh_delay: 1s, cluster_names: ["http://127.0.0.1:1"]}}}`: "relay.upstream.api_config_source.api_type: is REST",
		strings.Replace(controlled, "%", "", 1) + `
sources: [{name: relay, config_source: {path_config_source: {path: x.yaml}}}]`: "sources[0].name: \"relay\" is the source of what the relay's clients have",
		strings.Replace(strings.Replace(controlled, "%", "", 1), `target_uri: "127.0.0.1:1"`, `target_uri: "x"`, 1): "target_uri: needs a host and a port",
	} {
		_, problems := config.Load(write(t, t.TempDir(), "hdsd.yaml", text))
		found := false
		for _, p := range problems {
			found = found || strings.Contains(p.String(), want)
		}
		if !found {
			t.Errorf("%s: got %v, want %q", text, problems, want)
		}
	}
}

// TestForwardedIdentities: hdsd's own identity never stands in for a client's, and validate says
// what that means.
func TestForwardedIdentities(t *testing.T) {
	token := `, initial_metadata: [{key: authorization, value: x}]`
	call := `google_grpc: {channel_credentials: {ssl_credentials: {}}, call_credentials: [{access_token: x}], `
	for _, test := range []struct{ forward, service, want string }{
		{"AUTHORIZATION", "", ""},
		{"AUTHORIZATION", token, "shows a token of its own"},
		{"AUTHORIZATION", call, "shows a token of its own"},
		{"CLIENT_CERTIFICATE", "", "needs grpc.tls.client_ca_file"},
		{"NONE", token, ""},
	} {
		text := strings.Replace(controlled, "%", ", forward: "+test.forward, 1)
		if strings.HasPrefix(test.service, ",") {
			text = strings.Replace(text, "}}]}}", "}"+test.service+"}]}}", 1)
		} else if test.service != "" {
			text = strings.Replace(text, "google_grpc: {", test.service, 1)
		}
		_, problems := config.Load(write(t, t.TempDir(), "hdsd.yaml", "grpc: {insecure: true}\n"+text))
		if test.want == "" && len(problems) > 0 || test.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].String(), test.want)) {
			t.Errorf("%s with %q: got %v, want %q", test.forward, test.service, problems, test.want)
		}
	}
}

// TestOnlyTheHealthOfARelayIsLive: everything else of it needs a restart.
func TestOnlyTheHealthOfARelayIsLive(t *testing.T) {
	load := func(more string) *config.Config {
		c, problems := config.Load(write(t, t.TempDir(), "hdsd.yaml", "node_id: x\ndata_dir: /x\n"+strings.Replace(controlled, "%", more, 1)))
		if c == nil {
			t.Fatal(problems)
		}
		return c
	}
	if live, restart := config.Changes(load(""), load(", health: OFF")); len(live) != 1 || live[0] != "relay.health" || len(restart) > 0 {
		t.Errorf("health: %v, %v", live, restart)
	}
	if live, restart := config.Changes(load(""), load(", keep: 1s")); len(live) > 0 || len(restart) != 1 || restart[0] != "relay.keep" {
		t.Errorf("keep: %v, %v", live, restart)
	}
}
