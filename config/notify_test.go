package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
)

const onefile = "sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]\n"

func TestReceivers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hmac.key"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, problems := config.Load(write(t, dir, "hdsd.yaml", onefile+`
notify:
- name: oncall
  alertmanager: {url: "http://127.0.0.1:9093"}
  cluster_name_glob: "pay-*"
  kinds: [ENDPOINT_DOWN, HISTORY_FAILING]
  min_duration: 1m30s
- {name: hook, webhook: {url: "https://example.com/x?token=1", secret_file: hmac.key}}
`))
	if c == nil || len(problems) > 0 {
		t.Fatal(problems)
	}
	first, second := c.GetNotify()[0], c.GetNotify()[1]
	if first.GetMinDuration().AsDuration() != 90*time.Second || len(first.GetKinds()) != 2 || first.GetKinds()[1] != configv1.Notify_HISTORY_FAILING {
		t.Errorf("%v", first)
	}
	if file := second.GetWebhook().GetSecretFile(); file != filepath.Join(dir, "hmac.key") {
		t.Errorf("the secret is in %s", file)
	}
	if secret, err := config.ReadSecret(second.GetWebhook().GetSecretFile()); err != nil || string(secret) != "secret" {
		t.Errorf("%q, %v", secret, err)
	}
	changed, _ := config.Changes(c, &configv1.Config{})
	if !strings.Contains(strings.Join(changed, " "), "notify") {
		t.Errorf("these can change while hdsd runs: %q", changed)
	}
}

// TestHowReceiversAreReached: files are found beside the configuration, and what cannot be is
// said.
func TestHowReceiversAreReached(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"secret": "hunter2\n", "empty": "", "ca.pem": "none"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for more, want := range map[string]string{
		`basic_auth: {username: ann, password_file: secret}`: "",
		`token_file: secret`: "",
		`tls: {}`:            "",
		`basic_auth: {username: "a:b", password_file: secret}`: "basic_auth.username: \"a:b\" is no name",
		`basic_auth: {username: ann}`:                          "basic_auth.password_file: is needed",
		`token_file: empty`:                                    "token_file: the secret in " + filepath.Join(dir, "empty") + " is empty",
		`token_file: nowhere`:                                  "token_file: the secret cannot be read",
		`tls: {ca_file: ca.pem}`:                               "tls: " + filepath.Join(dir, "ca.pem") + " has no certificate in PEM",
		`tls: {certificate_chain_file: ca.pem}`:                "tls: certificate_chain_file and private_key_file",
		`basic_auth: {username: ann, password_file: secret}, tls: {ca_file: nowhere}`: "tls: the authorities cannot be read",
	} {
		_, problems := config.Load(write(t, dir, "hdsd.yaml", onefile+`notify: [{name: a, alertmanager: {url: "https://example.com"}, `+more+`}]`))
		if want == "" && len(problems) > 0 || want != "" && (len(problems) != 1 || !strings.Contains(problems[0].String(), want)) {
			t.Errorf("%s gives %v, want %q", more, problems, want)
		}
	}
	for more, want := range map[string]string{`token_file: secret`: "sends its secret without TLS", `tls: {}`: "has no effect on a URL with http"} {
		_, problems := config.Load(write(t, dir, "hdsd.yaml", onefile+`notify: [{name: a, alertmanager: {url: "http://example.com"}, `+more+`}]`))
		if len(problems) != 1 || !strings.Contains(problems[0].String(), want) {
			t.Errorf("%s gives %v, want %q", more, problems, want)
		}
	}
}

func TestMetricsOfClusters(t *testing.T) {
	for text, want := range map[string]string{
		`metrics: {cluster_name_globs: ["pay-*", web]}`:                        "",
		`metrics: {cluster_name_globs: [""]}`:                                  "metrics.cluster_name_globs[0]: is needed",
		`metrics: {cluster_name_globs: [web], max_clusters: 1001}`:             "metrics.max_clusters: is 1001",
		`metrics: {cluster_name_globs: [` + strings.Repeat("a, ", 100) + `b]}`: "metrics.cluster_name_globs: has 101 globs",
	} {
		c, problems := config.Load(write(t, t.TempDir(), "hdsd.yaml", onefile+text))
		if want == "" && (len(problems) > 0 || c.GetMetrics().GetMaxClusters() != 100) || want != "" && (len(problems) == 0 || !strings.Contains(problems[0].String(), want)) {
			t.Errorf("%s gives %v, want %q", text, problems, want)
		}
	}
}

func TestWrongReceivers(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": " \n", "long": strings.Repeat("x", 5000)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const am = `alertmanager: {url: "http://127.0.0.1:9093"}`
	for text, want := range map[string]string{
		"{" + am + "}":                  `notify[0].name: "" is no name`,
		"{name: \"a\\nb\", " + am + "}": "notify[0].name",
		"{name: a}":                     "notify[0]: has no receiver",
		"{name: a, " + am + "}, {name: a, " + am + "}":                      `notify[1].name: "a" is the name of another receiver`,
		"{name: a, " + am + ", webhook: {url: \"http://b\"}}":               "webhook",
		`{name: a, alertmanager: {url: "127.0.0.1:9093"}}`:                  "notify[0].alertmanager.url: is no URL",
		`{name: a, alertmanager: {url: "http://a/api/v2/alerts"}}`:          "notify[0].alertmanager.url: names the API",
		`{name: a, alertmanager: {url: "http://a/?x=1"}}`:                   "notify[0].alertmanager.url: has a query",
		`{name: a, webhook: {url: "ftp://a"}}`:                              "notify[0].webhook.url: is no URL",
		`{name: a, webhook: {url: ""}}`:                                     "notify[0].webhook.url: is no URL",
		`{name: a, webhook: {url: "http://a/#x"}}`:                          "notify[0].webhook.url: has a fragment",
		`{name: a, webhook: {url: "http://a", secret_file: missing}}`:       "notify[0].webhook.secret_file: the secret cannot be read",
		`{name: a, webhook: {url: "http://a", secret_file: empty}}`:         "is empty",
		`{name: a, webhook: {url: "http://a", secret_file: long}}`:          "is longer than 4096 bytes",
		"{name: a, " + am + ", kinds: [TEST]}":                              "notify[0].kinds[0]",
		"{name: a, " + am + ", min_duration: -1s}":                          "notify[0].min_duration",
		"{name: a, " + am + ", min_duration: 25h}":                          "notify[0].min_duration",
		"{name: a, " + am + ", kind: X}":                                    "notify[0].kind",
		strings.Repeat("{name: a, "+am+"}, ", 21) + "{name: b, " + am + "}": "notify: has 22 receivers",
	} {
		_, problems := config.Load(write(t, dir, "hdsd.yaml", onefile+"notify: ["+text+"]\n"))
		found := false
		for _, p := range problems {
			found = found || !p.Warning && strings.Contains(p.String(), want)
		}
		if !found {
			t.Errorf("%s gives %v, want %q", text, problems, want)
		}
	}
}
