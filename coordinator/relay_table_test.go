package coordinator

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"hdsd/config"
	"hdsd/peer/access"
)

// TestRelayedCallsHaveRoles compares the streaming methods of package access with those that hdsd serves with
// a relay.
func TestRelayedCallsHaveRoles(t *testing.T) {
	dir := t.TempDir()
	text := "grpc: {address: '127.0.0.1:0'}\nhttp: {address: '127.0.0.1:0'}\n" +
		"relay: {upstream: {api_config_source: {api_type: GRPC, transport_api_version: V3, grpc_services: [{google_grpc: {target_uri: '127.0.0.1:1', stat_prefix: x}}]}}}\n"
	if err := os.WriteFile(filepath.Join(dir, "hdsd.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	from, problems := config.Load(filepath.Join(dir, "hdsd.yaml"))
	if from == nil {
		t.Fatal(problems)
	}
	c, err := New(t.Context(), from, Options{Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	served := map[string]bool{}
	for service, info := range c.servers.grpc.GetServiceInfo() {
		for _, method := range info.Methods {
			name := "/" + service + "/" + method.Name
			served[name] = true
			_, common := access.Methods[name]
			if _, relayed := access.Relayed[name]; !common && !relayed {
				t.Errorf("%s has no role", name)
			}
		}
	}
	for name := range access.Relayed {
		if !served[name] {
			t.Errorf("%s has a role, and is not served", name)
		}
	}
}
