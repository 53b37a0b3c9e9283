package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hdsd/test/authority"
)

func TestBrokenFilesAreNamed(t *testing.T) {
	folder := t.TempDir()
	ca := authority.New(t, "one")
	pair, other := ca.Issue(t, "a"), ca.Issue(t, "b")
	expired := ca.Issue(t, "c", authority.Until(time.Now().Add(-time.Minute)))
	authority.Save(t, folder, map[string]string{
		"cert": pair.Chain, "key": pair.Key, "other": other.Key, "ca": ca.PEM(), "nonsense": "x", "expired": expired.Chain, "expired.key": expired.Key,
		"encrypted": "-----BEGIN ENCRYPTED PRIVATE KEY-----\neA==\n-----END ENCRYPTED PRIVATE KEY-----\n",
	})
	tests := map[string]struct{ certificate, key, ca, want string }{
		"good":             {"cert", "key", "ca", ""},
		"no certificate":   {"none", "key", "", "grpc.tls.certificate_chain_file: FOLDER/none: cannot be read: no such file or directory"},
		"no key":           {"cert", "none", "", "grpc.tls.private_key_file: FOLDER/none: cannot be read: no such file or directory"},
		"no authorities":   {"cert", "key", "none", "grpc.tls.client_ca_file: FOLDER/none: cannot be read: no such file or directory"},
		"bad certificate":  {"nonsense", "key", "", "grpc.tls.certificate_chain_file: FOLDER/nonsense: holds no certificate"},
		"bad key":          {"cert", "nonsense", "", "grpc.tls.private_key_file: FOLDER/nonsense: holds no private key"},
		"bad authorities":  {"cert", "key", "key", "grpc.tls.client_ca_file: FOLDER/key: holds no certificate"},
		"another's key":    {"cert", "other", "", "grpc.tls.private_key_file: FOLDER/other: does not go with FOLDER/cert"},
		"encrypted key":    {"cert", "encrypted", "", "grpc.tls.private_key_file: FOLDER/encrypted: is encrypted"},
		"files exchanged":  {"key", "cert", "", "grpc.tls.certificate_chain_file: FOLDER/key: holds no certificate"},
		"expired":          {"expired", "expired.key", "", "grpc.tls.certificate_chain_file: FOLDER/expired: is not valid at present: the certificate has expired at"},
		"certificate only": {"cert", "", "", "grpc.tls.private_key_file: is needed for TLS"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := "sources: [{name: a, config_source: {path: a}}]\n" +
				"grpc: {address: '0.0.0.0:1', tls: {certificate_chain_file: '" + test.certificate + "', private_key_file: '" + test.key + "', client_ca_file: '" + test.ca + "'}}"
			authority.Save(t, folder, map[string]string{"hdsd.yaml": text})
			_, problems := Load(filepath.Join(folder, "hdsd.yaml"))
			if test.want == "" {
				if len(problems) > 0 {
					t.Error(problems)
				}
				return
			}
			got := ""
			if len(problems) == 1 && problems[0].Line == 2 {
				got = strings.ReplaceAll(problems[0].Field+": "+problems[0].Message, folder, "FOLDER")
			}
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("got %v, want %s", problems, test.want)
			}
		})
	}
}

// TestAdminIsOnLoopback, at an address of its own.
func TestAdminIsOnLoopback(t *testing.T) {
	for address, want := range map[string]string{
		"localhost":       `admin.address: "localhost" is not IP:PORT`,
		"10.0.0.1:18082":  "admin.address: 10.0.0.1:18082 can be reached from other machines",
		"127.0.0.1:18080": "admin.address: 127.0.0.1:18080 is the address of grpc, http or probes already",
		"127.0.0.1:18081": "admin.address: 127.0.0.1:18081 is the address of grpc, http or probes already",
		"127.0.0.1:18082": "",
		"[::1]:18082":     "",
	} {
		path := filepath.Join(t.TempDir(), "hdsd.yaml")
		text := fmt.Sprintf("sources: [{name: a, config_source: {path_config_source: {path: a.yaml}}}]\nprobes: {address: \"127.0.0.1:18081\"}\nadmin: {address: %q}\n", address)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, problems := Load(path)
		if got := fmt.Sprint(problems); want == "" && len(problems) > 0 || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", address, got, want)
		}
	}
}
