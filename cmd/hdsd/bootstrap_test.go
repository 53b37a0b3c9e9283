package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExamplesAreWhatBootstrapPrints holds examples/ to the command's output;
// -update writes them.
func TestExamplesAreWhatBootstrapPrints(t *testing.T) {
	for name, args := range map[string]string{
		"checker.yaml":    "bootstrap checker --id checker-1 --region eu --zone a",
		"data-plane.yaml": "bootstrap client --id data-plane-1 --region eu --zone a --route web",
	} {
		status, out, errors := hdsd(t, strings.Fields(args)...)
		if status != exitDone || errors != "" {
			t.Fatalf("%s: exit status %d, %s", args, status, errors)
		}
		path := filepath.Join("..", "..", "examples", name)
		if *update {
			if err := os.WriteFile(path, []byte(out), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(have), out); diff != "" {
			t.Errorf("examples/%s is not what hdsd %s prints (-have +want); -update takes it over:\n%s", name, args, diff)
		}
	}
}

func TestBootstrapsAsTheFlagsSay(t *testing.T) {
	t.Setenv("HDSD_SERVER", "hdsd.example.com:18000")
	for name, args := range map[string]string{
		"bootstrap-checker.json": "bootstrap checker --id c --metadata vpc=blue --sub-zone r1 --admin [::1]:0 -o json",
		"bootstrap-client.yaml": "bootstrap client --id d --node-cluster edge --delta=false --eds web,pay --route pay --listen 0.0.0.0:80 " +
			"--server 10.0.0.5:18000 --tls-ca ca.pem --tls-cert cert.pem --tls-key key.pem --tls-server-name hdsd.internal",
	} {
		status, out, errors := hdsd(t, strings.Fields(args)...)
		if status != exitDone || errors != "" {
			t.Errorf("%s: exit status %d, %s", args, status, errors)
		}
		golden(t, name, out)
	}
	if status, out, _ := hdsd(t, "bootstrap", "client"); status != exitDone || !strings.Contains(out, "hdsd.example.com") || strings.Contains(out, "id:  #") {
		t.Errorf("without flags: exit status %d, %s", status, out)
	}
}
