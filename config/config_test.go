package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	credentialv3 "github.com/envoyproxy/go-control-plane/envoy/config/grpc_credential/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestProblemsAreAllReported(t *testing.T) {
	for _, file := range []string{"web.yaml", "spiffe.yaml", "wrong.yaml", "insecure.yaml", "nosources.yaml", "nofiles.json", "contract.yaml", "none.yaml", "verdict.yaml", "assignment.yaml", "upstreams.yaml", "planes.yaml", "access.yaml", "replicas.yaml", "wrongreplicas.yaml"} {
		t.Run(file, func(t *testing.T) {
			cfg, problems := config.Load(filepath.Join("testdata", file))
			folder, err := filepath.Abs("testdata")
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			fatal := false
			for _, problem := range problems {
				if problem.Warning {
					got.WriteString("warning: ")
				}
				fatal = fatal || !problem.Warning
				got.WriteString(strings.ReplaceAll(problem.String(), folder, "FOLDER") + "\n")
			}
			if fatal != (cfg == nil) {
				t.Errorf("got configuration %v with problems %v", cfg, problems)
			}
			golden := filepath.Join("testdata", file+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func write(t *testing.T, folder, name, content string) string {
	t.Helper()
	file := filepath.Join(folder, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func load(t *testing.T, content string) *config.Config {
	t.Helper()
	cfg, problems := config.Load(write(t, t.TempDir(), "hdsd.yaml", content))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return cfg
}

func TestDefaults(t *testing.T) {
	folder := t.TempDir()
	file := write(t, folder, "hdsd.yaml", "sources: [{name: local, config_source: {path: clusters.yaml}}]")
	got, problems := config.Load(file)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := &configv1.Config{}
	text := strings.NewReplacer("HOST", host, "FOLDER", filepath.ToSlash(folder)).Replace(`{
		"nodeId": "HOST", "grpc": {"address": "127.0.0.1:18000", "maxConnectionAge": "86400s"}, "http": {"address": "127.0.0.1:18080", "maxConnectionAge": "86400s"}, "dataDir": "FOLDER/data",
		"sources": [{"name": "local", "configSource": {"path": "FOLDER/clusters.yaml"}}],
		"assignment": {"redundancy": 3, "reconnectGrace": "5s", "settle": "3s"}, "reporting": {"interval": "1s"}, "verdict": {},
		"history": {"retention": "7776000s"}, "checkers": {"probation": "30s", "probeTargets": {"minInterval": "0.1s", "maxProbesPerSecond": 20000}}, "limits": {"maxMessageBytes": 67108864, "maxConnections": 20000, "maxConnectionsPerCaller": 15000, "maxStreamsPerConnection": 1000, "maxStreams": 25000, "maxStreamsPerCaller": 24000, "maxSubscriptions": 400000, "maxSubscriptionsPerCaller": 200000,
			"maxSourceClusters": 100000, "maxSourceEndpoints": 2000000, "maxClusterEndpoints": 150000, "maxWatchers": 5000, "maxWatchersPerCaller": 1000, "maxQueries": 1000, "maxQueriesPerCaller": 100, "maxQueryRows": 200000, "maxIdsPerCaller": 2000, "maxJoinsPerMinute": 1200}}`)
	if err := protojson.Unmarshal([]byte(text), want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestPathsAreRelativeToTheFile(t *testing.T) {
	cfg, problems := config.Load("testdata/contract.yaml")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	folder, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	path, watched := config.PathOf(cfg.GetSources()[0])
	if path != filepath.Join(folder, "clusters.yaml") || watched != folder || cfg.GetDataDir() != filepath.Join(folder, "data") {
		t.Errorf("got %q, %q, %q", path, watched, cfg.GetDataDir())
	}
	if path, watched := config.PathOf(cfg.GetSources()[1]); path != "/etc/clusters" || watched != "" {
		t.Errorf("got %q, %q", path, watched)
	}
}

// TestPathsOfCredentialsAreRelativeToTheFile: also in what an Any holds.
func TestPathsOfCredentialsAreRelativeToTheFile(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "the.token", "abc")
	file := write(t, folder, "hdsd.yaml", `
sources:
- name: upstream
  config_source:
    api_config_source:
      api_type: AGGREGATED_GRPC
      grpc_services:
      - google_grpc:
          target_uri: "10.0.0.5:18000"
          stat_prefix: x
          channel_credentials: {ssl_credentials: {}}
          call_credentials:
          - from_plugin:
              name: envoy.grpc_credentials.file_based_metadata
              typed_config:
                "@type": type.googleapis.com/envoy.config.grpc_credential.v3.FileBasedMetadataConfig
                secret_data: {filename: the.token, watched_directory: {path: .}}
`)
	cfg, problems := config.Load(file)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	google := cfg.GetSources()[0].GetConfigSource().GetApiConfigSource().GetGrpcServices()[0].GetGoogleGrpc()
	secret := &credentialv3.FileBasedMetadataConfig{}
	if err := google.GetCallCredentials()[0].GetFromPlugin().GetTypedConfig().UnmarshalTo(secret); err != nil {
		t.Fatal(err)
	}
	from := secret.GetSecretData()
	if from.GetFilename() != filepath.Join(folder, "the.token") || from.GetWatchedDirectory().GetPath() != folder {
		t.Errorf("resolved as %v", from)
	}
}

func TestExample(t *testing.T) {
	cfg, problems := config.Load("../examples/hdsd.yaml")
	if len(problems) > 0 || cfg == nil {
		t.Error(problems)
	}
}

func TestChanges(t *testing.T) {
	const base = "sources: [{name: a, config_source: {path: /a}}]\nnode_id: n\ndata_dir: /d\n"
	tests := map[string]struct {
		next          string
		live, restart []string
	}{
		"nothing":      {base + "mode: PUBLISH\nassignment: {redundancy: 3}", nil, nil},
		"sources":      {"sources: [{name: a, config_source: {path: /b}}]\nnode_id: n\ndata_dir: /d", []string{"sources"}, nil},
		"retention":    {base + "history: {retention: 60s}", []string{"history.retention"}, nil},
		"quota":        {base + "history: {max_bytes: 1048576, require_writable: true}", []string{"history.max_bytes", "history.require_writable"}, nil},
		"node":         {strings.Replace(base, "node_id: n", "node_id: m", 1), nil, []string{"node_id"}},
		"data":         {strings.Replace(base, "/d", "/e", 1), nil, []string{"data_dir"}},
		"initial":      {base + "verdict: {initial_health: UNHEALTHY}", []string{"verdict"}, nil},
		"addresses":    {base + "grpc: {address: '127.0.0.1:1'}\nhttp: {address: '127.0.0.1:2', insecure: true}", nil, []string{"grpc.address", "http.address", "http.insecure"}},
		"assignment":   {base + "assignment: {redundancy: 2, settle: 1s, reconnect_grace: 1s}", []string{"assignment.redundancy"}, []string{"assignment.reconnect_grace", "assignment.settle"}},
		"mode":         {base + "mode: SHADOW", []string{"mode"}, nil},
		"reporting":    {base + "reporting: {interval: 2s}", nil, []string{"reporting.interval"}},
		"limits":       {base + "limits: {max_message_bytes: 2000000}", nil, []string{"limits.max_message_bytes"}},
		"EDS source":   {base + "data_planes: {eds_config_source: {api_config_source: {api_type: REST, cluster_names: [hdsd], refresh_delay: 1s}}}", nil, []string{"data_planes.eds_config_source"}},
		"checkers":     {base + "checkers: {files: [/x]}", []string{"checkers"}, nil},
		"policies too": {base + "policies: [{cluster_name_glob: a, redundancy: 1}]\nreporting: {interval: 2s}", []string{"policies"}, []string{"reporting.interval"}},
		"defaults":     {base + "default_health_checks: [{cluster_name_glob: a, health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]}]", []string{"default_health_checks"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			live, restart := config.Changes(load(t, base), load(t, test.next))
			if diff := cmp.Diff(test.live, live); diff != "" {
				t.Errorf("reloadable: %s", diff)
			}
			if diff := cmp.Diff(test.restart, restart); diff != "" {
				t.Errorf("restart: %s", diff)
			}
			before, next := load(t, base), load(t, test.next)
			taken := config.Reloaded(before, next)
			if _, restart := config.Changes(before, taken); restart != nil {
				t.Errorf("taken over are %v", restart)
			}
			if live, _ := config.Changes(taken, next); live != nil {
				t.Errorf("not taken over are %v", live)
			}
		})
	}
}

// TestEDSSource: what Envoy refuses in a cluster is refused where it stands.
func TestEDSSource(t *testing.T) {
	const grpc = "grpc_services: [{envoy_grpc: {cluster_name: hdsd}}]"
	for text, want := range map[string]string{
		"{ads: {}}": "", "{resource_api_version: V3, ads: {}, initial_fetch_timeout: 5s}": "",
		"{api_config_source: {api_type: GRPC, " + grpc + "}}":                                  "",
		"{api_config_source: {api_type: DELTA_GRPC, transport_api_version: V3, " + grpc + "}}": "",
		"{api_config_source: {api_type: REST, cluster_names: [hdsd], refresh_delay: 1s}}":      "",
		"{}":                               "is missing: give one of",
		"{self: {}}":                       "data_planes.eds_config_source.self: is for gRPC clients",
		"{path_config_source: {path: /a}}": "is a path", "{path: /a}": "is a path",
		"{api_config_source: {api_type: REST, cluster_names: [hdsd]}}":                   "refresh_delay: is needed",
		"{api_config_source: {api_type: GRPC}}":                                          "grpc_services: needs one",
		"{api_config_source: {api_type: GRPC, cluster_names: [hdsd], " + grpc + "}}":     "cluster_names: is for REST",
		"{api_config_source: {api_type: AGGREGATED_GRPC, " + grpc + "}}":                 "api_type: is AGGREGATED_GRPC",
		"{api_config_source: {" + grpc + "}}":                                            "api_type: is DEPRECATED",
		"{api_config_source: {api_type: GRPC, grpc_services: [{}]}}":                     "grpc_services[0]",
		"{api_config_source: {api_type: GRPC, transport_api_version: V2, " + grpc + "}}": "names V2",
		"{resource_api_version: V2, ads: {}}":                                            "names V2",
	} {
		_, problems := config.Load(write(t, t.TempDir(), "hdsd.yaml", "sources: [{name: a, config_source: {path: /a}}]\ndata_planes:\n  eds_config_source: "+text))
		if want == "" && len(problems) > 0 || want != "" && (len(problems) != 1 || !strings.Contains(problems[0].String(), "hdsd.yaml:3") || !strings.Contains(problems[0].String(), want)) {
			t.Errorf("%s: %v, want %s", text, problems, want)
		}
	}
}

// TestLimitsFollowFromOneAnother: more clusters of a source have more names of a
// data plane and larger messages follow, unless the file says otherwise.
// TestBytesInFlightFollowFromTheMemory, within bounds, unless they are set.
func TestBytesInFlightFollowFromTheMemory(t *testing.T) {
	const least = 65 << 20
	for _, test := range []struct {
		set    uint32
		memory uint64
		want   int64
	}{
		{0, 0, least}, {0, 512 << 20, least}, {0, 4 << 30, 256 << 20}, {0, 16 << 30, 1 << 30}, {0, 1 << 40, 1 << 30}, {2 << 20, 16 << 30, 2 << 20},
	} {
		l := &configv1.Limits{MaxMessageBytes: 64 << 20, MaxBytesInFlight: test.set}
		if got := config.BytesInFlight(l, test.memory); got != test.want {
			t.Errorf("%d set, %d of memory: %d, want %d", test.set, test.memory, got, test.want)
		}
	}
}

func TestLimitsFollowFromOneAnother(t *testing.T) {
	const one, two = "sources: [{name: a, config_source: {path: /a}}]\n", "sources: [{name: a, config_source: {path: /a}}, {name: b, config_source: {path: /b}}]\n"
	for name, test := range map[string]struct {
		text         string
		names, bytes int
	}{
		"by default":        {one, 200_000, 64 << 20},
		"two sources":       {two, 400_000, 64 << 20},
		"few":               {one + "limits: {max_source_clusters: 10}", 20, 64 << 20},
		"many":              {one + "limits: {max_source_clusters: 1000000}", 2_000_000, 640_000_000},
		"any number":        {one + "limits: {max_source_clusters: 4294967295}", 8_589_934_590, 1 << 30},
		"many, little room": {one + "limits: {max_source_clusters: 100000, max_message_bytes: 1048576}", 200_000, 1 << 20},
	} {
		cfg := load(t, test.text)
		if names, bytes := config.Names(cfg), int(cfg.GetLimits().GetMaxMessageBytes()); names != test.names || bytes != test.bytes {
			t.Errorf("%s: %d names, %d bytes, want %d, %d", name, names, bytes, test.names, test.bytes)
		}
	}
	_, problems := config.Load(write(t, t.TempDir(), "hdsd.yaml", one+"limits: {max_source_clusters: 1000000, max_message_bytes: 67108864}"))
	if len(problems) != 1 || !strings.Contains(problems[0].String(), "hdsd.yaml:2") || !strings.Contains(problems[0].String(), "write 640000000") {
		t.Errorf("little room: %v", problems)
	}
}

// TestDocsNameWhatNeedsARestart, just as Changes does.
func TestDocsNameWhatNeedsARestart(t *testing.T) {
	document, err := os.ReadFile("../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, begins := strings.Cut(string(document), "On SIGHUP everything takes effect but ")
	text, _, ends := strings.Cut(text, ";")
	if !begins || !ends {
		t.Fatal("configuration.md does not say what takes effect on SIGHUP")
	}
	var named []string
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			named = append(named, part)
		}
	}
	if diff := cmp.Diff(config.NeedRestart(), named); diff != "" {
		t.Error(diff)
	}
}

// TestInheritVerdict: a policy's verdict takes over the durations and messages
// that it does not name; degraded_when without codes is none.
func TestInheritVerdict(t *testing.T) {
	const common = `{"rule": "ANY", "staleness": "9s", "degradedWhen": {"httpStatusCode": [429]}, "massFailure": {}}`
	for name, test := range map[string]struct{ own, want string }{
		"nothing":  {`{}`, `{"staleness": "9s", "degradedWhen": {"httpStatusCode": [429]}, "massFailure": {}}`},
		"its own":  {`{"degradedWhen": {"httpStatusCode": [503]}, "staleness": "5s"}`, `{"staleness": "5s", "degradedWhen": {"httpStatusCode": [503]}, "massFailure": {}}`},
		"no codes": {`{"degradedWhen": {}}`, `{"staleness": "9s", "degradedWhen": {}, "massFailure": {}}`},
	} {
		cfg := load(t, `{"sources": [{"name": "a", "configSource": {"path": "/a"}}], "verdict": `+common+`, "policies": [{"clusterNameGlob": "a", "verdict": `+test.own+`}]}`)
		want := &configv1.Verdict{}
		if err := protojson.Unmarshal([]byte(test.want), want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, config.InheritVerdict(cfg.GetPolicies()[0].GetVerdict(), cfg.GetVerdict()), protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A configuration without problems stays the same when written out and read
// again, and no input makes loading panic.
func FuzzLoad(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.[yj]*")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && !strings.HasSuffix(file, "golden") {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		folder := t.TempDir()
		cfg, problems := config.Load(write(t, folder, "hdsd.yaml", string(data)))
		if cfg == nil {
			if len(problems) == 0 {
				t.Fatal("refused without a word")
			}
			return
		}
		if len(cfg.GetSources()) == 0 && cfg.GetRelay() == nil || cfg.GetNodeId() == "" || cfg.GetReporting().GetInterval() == nil {
			t.Errorf("incomplete: %v", cfg)
		}
		written, err := protojson.Marshal(cfg)
		if err != nil {
			return // protojson is stricter about what is inside some messages
		}
		again, problems := config.Load(write(t, folder, "hdsd.json", string(written)))
		if again == nil || !proto.Equal(cfg, again) {
			t.Errorf("got %v and %v, %v", cfg, again, problems)
		}
	})
}

// TestExamineReturnsTheValidRest: sources stand, whatever else is wrong.
func TestExamineReturnsTheValidRest(t *testing.T) {
	path := write(t, t.TempDir(), "hdsd.yaml", `
sources: [{name: "", config_source: {path_config_source: {path: /a.yaml}}}]
reporting: {interval: -1s}
sorces: []
checkers: {files: [relative, /b]}
default_health_checks:
- {cluster_name_glob: a, health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]}
- {cluster_name_glob: b, health_checks: [{timeout: 1s}]}
`)
	cfg, problems := config.Examine(path)
	if len(problems) != 8 || cfg == nil {
		t.Fatalf("got %v, %v", cfg, problems)
	}
	where, _ := config.PathOf(cfg.GetSources()[0])
	checks := cfg.GetDefaultHealthChecks()
	if where != "/a.yaml" || cfg.GetReporting().GetInterval().AsDuration() != time.Second || len(cfg.GetCheckers().GetFiles()) != 2 ||
		len(checks) != 2 || len(checks[0].GetHealthChecks()) != 1 || len(checks[1].GetHealthChecks()) != 0 {
		t.Errorf("left is %v", cfg)
	}
	if loaded, again := config.Load(path); loaded != nil || len(again) != len(problems) {
		t.Errorf("loaded as %v, %v", loaded, again)
	}
}

// TestFirstDeltaResponse: it says something of delta streams, which not every source has.
func TestFirstDeltaResponse(t *testing.T) {
	for kind, want := range map[string]string{
		"DELTA_GRPC": "", "AGGREGATED_DELTA_GRPC": "",
		"GRPC": "is for api_type DELTA_GRPC", "AGGREGATED_GRPC": "is for api_type DELTA_GRPC",
	} {
		text := "sources:\n- name: a\n  first_delta_response_is_complete: true\n  config_source:\n    api_config_source:\n      api_type: " + kind +
			"\n      transport_api_version: V3\n      grpc_services: [{google_grpc: {target_uri: \"localhost:1\", stat_prefix: a}}]\n"
		_, problems := config.Load(write(t, t.TempDir(), "hdsd.yaml", text))
		if want == "" && len(problems) > 0 || want != "" && (len(problems) != 1 || !strings.Contains(problems[0].String(), want) || !strings.Contains(problems[0].String(), "hdsd.yaml:3")) {
			t.Errorf("%s: %v, want %q", kind, problems, want)
		}
	}
}
