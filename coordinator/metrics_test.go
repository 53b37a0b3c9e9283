package coordinator_test

import (
	"bufio"
	"cmp"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"hdsd/test/etcd"
)

// scrape is one answer of /metrics.
type scrape struct {
	types   map[string]string  // by metric
	samples map[string]float64 // by name and labels; of histograms, how many were observed
}

func (s *site) scrape() scrape {
	_, text := s.get("/metrics")
	return parseMetrics(strings.NewReader(text))
}

func parseMetrics(from io.Reader) scrape {
	found := scrape{map[string]string{}, map[string]float64{}}
	for lines := bufio.NewScanner(from); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 4 && words[1] == "TYPE" {
			found.types[words[2]] = words[3]
		}
		if len(words) > 0 && words[0] != "#" {
			end := strings.LastIndexByte(lines.Text(), ' ')
			found.samples[lines.Text()[:end]], _ = strconv.ParseFloat(lines.Text()[end+1:], 64)
		}
	}
	return found
}

// sum adds up the samples of a metric whose labels have a text.
func (s scrape) sum(metric string) (sum float64) {
	name, label, _ := strings.Cut(metric, "{")
	if s.types[name] == "histogram" {
		name += "_count"
	}
	for sample, value := range s.samples {
		labels, ok := strings.CutPrefix(sample, name)
		if ok && (labels == "" || labels[0] == '{') && strings.Contains(labels, strings.TrimSuffix(label, "}")) {
			sum += value
		}
	}
	return sum
}

// Ways for a metric to change.
func rises(before, after float64) bool { return after > before }
func falls(before, after float64) bool { return after < before }

// elsewhere are the metrics that are moved by another test, in that file.
var elsewhere = map[string]string{
	"hdsd_notifications_open":              "notify_test.go",
	"hdsd_notifications_queued":            "notify_test.go",
	"hdsd_notifications_sent_total":        "notify_test.go",
	"hdsd_notifications_failed_total":      "notify_test.go",
	"hdsd_notifications_dropped_total":     "notify_test.go",
	"hdsd_notify_receivers_failing":        "notify_test.go",
	"hdsd_notification_delay_seconds":      "notify_test.go",
	"hdsd_history_pending":                 "figures_test.go",
	"hdsd_history_dropped_total":           "figures_test.go",
	"hdsd_history_gaps_total":              "figures_test.go",
	"hdsd_history_used_bytes":              "figures_test.go",
	"hdsd_history_near_quota":              "figures_test.go",
	"hdsd_history_pruned_early_total":      "figures_test.go",
	"hdsd_history_skipped_total":           "figures_test.go",
	"hdsd_history_failing":                 "figures_test.go",
	"hdsd_clock_doubted":                   "figures_test.go",
	"hdsd_grpc_handshakes_failed_total":    "handshakes_test.go",
	"hdsd_endpoints_probe_limited":         "probe_limit_test.go",
	"hdsd_probe_limited_addresses":         "probe_limit_test.go",
	"hdsd_endpoints_short_of_votes":        "quorum_test.go",
	"hdsd_clusters_in_panic":               "panics_test.go",
	"hdsd_zones_down":                      "alarms_test.go",
	"hdsd_listener_insecure":               "probes_test.go",
	"hdsd_mailbox_events":                  "figures_test.go",
	"hdsd_panics_total":                    "figures_test.go",
	"hdsd_certificate_expiry_seconds":      "certificates_test.go",
	"hdsd_connections_ended_total":         "certificates_test.go",
	"hdsd_queries":                         "bounds_test.go",
	"hdsd_watches_deaf_total":              "bounds_test.go",
	"hdsd_queries_waiting":                 "bounds_test.go",
	"hdsd_messages_waiting":                "bounds_test.go",
	"hdsd_relay_bytes_in_flight":           "bounds_test.go",
	"hdsd_messages_longest_wait_seconds":   "bounds_test.go",
	"hdsd_limit_refusals_total":            "bounds_test.go",
	"hdsd_endpoints_short":                 "placement_test.go",
	"hdsd_plan_info":                       "placement_test.go",
	"hdsd_endpoints_unobserved":            "quiet_test.go",
	"hdsd_checkers_blind":                  "blind_test.go",
	"hdsd_checkers_doubted":                "doubt_test.go",
	"hdsd_paths_doubted":                   "doubt_test.go",
	"hdsd_checkers_distrusted":             "verdict_test.go",
	"hdsd_endpoints_damped":                "verdict_test.go",
	"hdsd_mass_failures":                   "verdict_test.go",
	"hdsd_mass_failures_total":             "verdict_test.go",
	"hdsd_canary_trials":                   "trials_test.go",
	"hdsd_canary_proven_total":             "trials_test.go",
	"hdsd_canary_lost_total":               "trials_test.go",
	"hdsd_canary_blocked":                  "trials_test.go",
	"hdsd_data_planes_refusing":            "planes_refusing_test.go",
	"hdsd_sources_broken":                  "sources_test.go",
	"hdsd_sources_held":                    "sources_test.go",
	"hdsd_source_endpoints_held":           "sources_test.go",
	"hdsd_source_changes_delayed_total":    "sources_test.go",
	"hdsd_names":                           "resolve_names_test.go",
	"hdsd_names_failing":                   "resolve_names_test.go",
	"hdsd_name_lookups_total":              "resolve_names_test.go",
	"hdsd_name_failures_total":             "resolve_names_test.go",
	"hdsd_upstreams":                       "upstream_test.go",
	"hdsd_upstreams_connected":             "upstream_test.go",
	"hdsd_upstream_age_seconds":            "upstream_test.go",
	"hdsd_upstream_fullness_ratio":         "fullness_test.go",
	"hdsd_upstream_resources_refused":      "upstream_test.go",
	"hdsd_hds_stuck_streams_total":         "../hds/lifecycle_test.go",
	"hdsd_hds_idle_streams_total":          "../hds/join_test.go",
	"hdsd_xds_idle_streams_total":          "../eds/names_test.go",
	"hdsd_hds_v2_left_out_clusters_total":  "../hds/v2_test.go",
	"hdsd_files_behind":                    "../eds/files/files_test.go",
	"hdsd_xds_first_syncs_waiting":         "../eds/admission_test.go",
	"hdsd_xds_subscriptions_in_groups":     "../test/fleet/groups_test.go",
	"hdsd_xds_pollers":                     "../eds/polled_test.go",
	"hdsd_xds_assignments_not_asked":       "../eds/unasked_test.go",
	"hdsd_xds_stuck_streams_total":         "../eds/ads_test.go",
	"hdsd_relay_streams":                   "relay_metrics_test.go",
	"hdsd_relay_streams_from_memory":       "relay_metrics_test.go",
	"hdsd_relay_resources":                 "relay_metrics_test.go",
	"hdsd_relay_health_responses_total":    "relay_metrics_test.go",
	"hdsd_relay_refusals_total":            "relay_metrics_test.go",
	"hdsd_relay_upstream_failures_total":   "relay_metrics_test.go",
	"hdsd_grpc_unserved_calls_total":       "unserved_test.go",
	"hdsd_relay_load_reports_total":        "relay_loads_test.go",
	"hdsd_xds_unencodable_resources_total": "../eds/metrics_test.go",
	"hdsd_replica_leads":                   "replicas_test.go",
	"hdsd_replica_epoch":                   "replicas_test.go",
	"hdsd_replica_position":                "replicas_test.go",
	"hdsd_replica_etcd_connected":          "replicas_test.go",
	"hdsd_replica_links":                   "replicas_test.go",
	"hdsd_replica_messages_total":          "replicas_test.go",
	"hdsd_replica_message_bytes_total":     "replicas_test.go",
}

// TestMetricsMoveAndAreDocumented does one step after the other on a running coordinator, and compares the
// metrics that change with those that each step names, with the exported ones and with
// docs/reference/metrics.md.
func TestMetricsMoveAndAreDocumented(t *testing.T) {
	t.Parallel()
	p := newPlayground(t)
	moved := map[string]bool{}
	for _, step := range p.steps() {
		before := p.before()
		step.act()
		for metric, changes := range step.moves {
			name, _, _ := strings.Cut(metric, "{")
			moved[name] = true
			p.eventually(step.name+": "+metric+" to change", func() bool { return changes(before.sum(metric), p.scrape().sum(metric)) })
		}
	}
	for metric, file := range elsewhere {
		moved[metric] = true
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), metric) {
			t.Errorf("%s is not in %s: %v", metric, file, err)
		}
	}
	exported := p.scrape().types
	maps.Copy(exported, withTLS(t).scrape().types) // which has some more
	maps.Copy(exported, withRelay(t).scrape().types)
	maps.Copy(exported, newFleet(t, etcd.Start(t), static("web", "127.0.0.1:1"), "r1").sites["r1"].scrape().types)
	maps.DeleteFunc(exported, func(name, _ string) bool {
		return strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_")
	})
	if diff := gocmp.Diff(documented(t), exported); diff != "" {
		t.Errorf("docs/reference/metrics.md (-) and /metrics (+) differ:\n%s", diff)
	}
	for _, name := range slices.Sorted(maps.Keys(exported)) {
		if !strings.HasPrefix(name, "hdsd_") {
			t.Errorf("%s has no name of hdsd's", name)
		}
		if !moved[name] {
			t.Errorf("no step moves %s", name)
		}
	}
}

// documented reads the rows "| `metric` | type | labels | meaning | use |".
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(line), " |"), " | ")
		name, isRow := strings.CutPrefix(cells[0], "| `hdsd_")
		if !isRow {
			continue
		}
		if len(cells) != 5 || slices.Contains(cells, "") {
			t.Errorf("the row of hdsd_%s is not metric, type, labels, meaning and use", cmp.Or(name, "?"))
			continue
		}
		types["hdsd_"+strings.TrimSuffix(name, "`")] = cells[1]
	}
	return types
}

// TestAlertsUseDocumentedMetrics covers docs/alerts.yaml.
func TestAlertsUseDocumentedMetrics(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	known, named := documented(t), 0
	for _, word := range strings.FieldsFunc(string(text), func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		if !strings.HasPrefix(word, "hdsd_") {
			continue
		}
		named++
		if known[word] == "" && known[strings.TrimSuffix(word, "_bucket")] != "histogram" {
			t.Errorf("docs/alerts.yaml names %s, which is no metric", word)
		}
	}
	if named == 0 {
		t.Error("docs/alerts.yaml names no metric")
	}
}
