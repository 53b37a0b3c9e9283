package bootstrap_test

import (
	"os"
	"path/filepath"
	"testing"

	"hdsd/bootstrap"
	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// TestEnvoysTakeThem has each release that hdsd is measured with judge every
// part of a bootstrap.
func TestEnvoysTakeThem(t *testing.T) {
	plain := bootstrap.Server{Address: "127.0.0.1:18000"}
	secure := bootstrap.Server{Address: "hdsd.example.com:18000", TLS: authorities(t)}
	byIP := bootstrap.Server{Address: "[::1]:18000", TLS: authorities(t)}
	bootstraps := map[string]interface{ YAML() ([]byte, error) }{
		"checker":          bootstrap.Checker{Node: node(), Server: plain},
		"checker over TLS": bootstrap.Checker{Node: node(), Server: secure},
		"checker by an IP": bootstrap.Checker{Node: node(), Server: byIP},
		"client, delta":    bootstrap.Client{Node: node(), Server: plain, Delta: true},
		"client over TLS":  bootstrap.Client{Node: node(), Server: secure},
		"client that routes": bootstrap.Client{
			Node: node(), Server: plain, Delta: true, Clusters: []string{"web", "pay/eu: 1"}, Listen: "127.0.0.1:0", Route: "web",
		},
	}
	for name, b := range bootstraps {
		text := yaml(t, b)
		asJSON, err := bootstrap.JSON(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range []string{"1.36.4", "1.38.3", "1.40.0"} {
			if err := envoy.Validate(t, version, text); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := envoy.Validate(t, envoy.Version, asJSON); err != nil {
			t.Errorf("%s as JSON: %v", name, err)
		}
	}
}

// authorities names a file of authorities that is there, which Envoy wants.
func authorities(t *testing.T) *bootstrap.TLS {
	t.Helper()
	s, err := upstream.Start(t.Context(), upstream.Options{Protocol: upstream.HTTPS})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, s.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	return &bootstrap.TLS{CA: ca}
}
