package alerting

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	pki "hdsd/test/authority"
	"hdsd/test/debian"
)

// rule is what makes an alert fire.
type rule struct {
	values map[string]string // by series as it is exposed; empty: there is no such series
	also   []string          // other alerts that fire, too
	at     string            // when; 30m if empty
}

// Values of series, in promtool's notation.
const (
	one    = "1x600"
	zero   = "0x600"
	grows  = "0+10x600"
	older  = "1x600"              // a time in 1970; the test is in 1970, too
	gone   = "1x10 _x590"         // for the rest of the time there is no such series
	soon   = "86400x600"          // a day
	bucket = `_bucket{le="+Inf"}` // of a histogram
)

// Series of a second replica.
const (
	otherReplica  = `hdsd_replica_leads{instance="b:18080"}`
	otherPosition = `hdsd_replica_position{instance="b:18080"}`
)

// replicated is what two replicas expose while all is well, beside what a coordinator alone does. The first leads.
var replicated = map[string]string{
	"hdsd_replica_leads": "1", otherReplica: "0", "hdsd_replica_etcd_connected": "1", "hdsd_replica_epoch": "42", "hdsd_replica_position": "100", otherPosition: "100",
}

// rules has each alert of docs/alerts.yaml.
var rules = map[string]rule{
	"HdsdDown":                    {values: map[string]string{"hdsd_ready": zero}},
	"HdsdTooFewCheckers":          {values: map[string]string{"hdsd_checkers_connected": "2x600"}},
	"HdsdNoCheckers":              {values: map[string]string{"hdsd_checkers_connected": zero}},
	"HdsdNoLeader":                {values: map[string]string{"hdsd_replica_leads": zero}},
	"HdsdEngineLost":              {values: map[string]string{"hdsd_replica_etcd_connected": zero}},
	"HdsdReplicaLost":             {values: map[string]string{otherReplica: "0x20 _x580"}},
	"HdsdReplicaBehind":           {values: map[string]string{"hdsd_replica_position": "0+1x600", otherPosition: "100+1x600"}},
	"HdsdLeaderUnstable":          {values: map[string]string{"hdsd_replica_epoch": "0+1x600"}},
	"HdsdClustersDown":            {values: map[string]string{`hdsd_clusters_by_state{state="all_down"}`: one}},
	"HdsdClustersWithoutHealth":   {values: map[string]string{`hdsd_clusters_by_state{state="none_healthy"}`: one}},
	"HdsdClustersInPanic":         {values: map[string]string{"hdsd_clusters_in_panic": one}},
	"HdsdZonesDown":               {values: map[string]string{"hdsd_zones_down": one}},
	"HdsdEndpointsUnobserved":     {values: map[string]string{"hdsd_endpoints_unobserved": one}},
	"HdsdCheckersDoubted":         {values: map[string]string{"hdsd_checkers_doubted": one}},
	"HdsdCheckersBlind":           {values: map[string]string{"hdsd_checkers_blind": one}},
	"HdsdPathsCut":                {values: map[string]string{"hdsd_paths_doubted": one}},
	"HdsdHandshakesFail":          {values: map[string]string{`hdsd_grpc_handshakes_failed_total{reason="plaintext"}`: grows}},
	"HdsdProbeLimitReached":       {values: map[string]string{"hdsd_endpoints_probe_limited": one}},
	"HdsdMessagesWait":            {values: map[string]string{"hdsd_messages_longest_wait_seconds": "2x600"}},
	"HdsdNotifyFailing":           {values: map[string]string{"hdsd_notify_receivers_failing": one}},
	"HdsdBackupOld":               {values: map[string]string{"hdsd_last_backup_timestamp_seconds": older}, at: "50h"},
	"HdsdCheckerSilent":           {values: map[string]string{"hdsd_checkers_silent": one}},
	"HdsdCheckersShareANodeID":    {values: map[string]string{"hdsd_hds_refused_streams_total": grows}},
	"HdsdEndpointsNotChecked":     {values: map[string]string{"hdsd_quarantined": one}},
	"HdsdUpstreamAway":            {values: map[string]string{"hdsd_upstream_age_seconds": "400x600"}},
	"HdsdRelayUpstreamAway":       {values: map[string]string{"hdsd_relay_streams_from_memory": one}},
	"HdsdSourceHeld":              {values: map[string]string{"hdsd_sources_held": one}},
	"HdsdSourceBroken":            {values: map[string]string{"hdsd_sources_broken": one}},
	"HdsdSourceProblems":          {values: map[string]string{"hdsd_source_problems": one}},
	"HdsdManyEndpointsDown":       {values: map[string]string{`hdsd_endpoints_by_health{health="TIMEOUT"}`: one}},
	"HdsdFlapping":                {values: map[string]string{`hdsd_transitions_total{to="UNHEALTHY"}`: grows}},
	"HdsdSlowVerdicts":            {values: map[string]string{"hdsd_verdict_delay_seconds" + bucket: grows}},
	"HdsdSlowPushes":              {values: map[string]string{"hdsd_xds_push_delay_seconds" + bucket: grows}},
	"HdsdRefusedByDataPlanes":     {values: map[string]string{"hdsd_data_planes_refusing": one}},
	"HdsdFilesBehind":             {values: map[string]string{"hdsd_files_behind": one}},
	"HdsdDataPlanesWithoutHealth": {values: map[string]string{"hdsd_xds_assignments_not_asked": one}},
	"HdsdHistoryFailing":          {values: map[string]string{"hdsd_history_failing": one}},
	"HdsdHistoryNearQuota":        {values: map[string]string{"hdsd_history_near_quota": one}},
	"HdsdClockDoubted":            {values: map[string]string{"hdsd_clock_doubted": one}},
	"HdsdFrozen":                  {values: map[string]string{"hdsd_frozen": one}, at: "5h"},
	"HdsdBug":                     {values: map[string]string{"hdsd_panics_total": grows}},
	"HdsdCertificateExpires":      {values: map[string]string{`hdsd_certificate_expiry_seconds{certificate="own",listener="http"}`: soon}},
}

// TestTheRules are right for promtool; each alert fires when it should, and none while all is
// well. The series are those of a coordinator that runs.
func TestTheRules(t *testing.T) {
	t.Parallel()
	path, err := filepath.Abs(filepath.Join("..", "..", "docs", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	promtool := filepath.Join(debian.Unpacked(t, "usr/bin/promtool", "prometheus"), "usr", "bin", "promtool")
	if out, err := exec.Command(promtool, "check", "rules", path).CombinedOutput(); err != nil || !strings.Contains(string(out), "SUCCESS") {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [%s]\nevaluation_interval: 1m\ntests:\n", path)
	exposed := exposed(t)
	maps.Copy(exposed, replicated)
	write(&b, "all is well", exposed, rule{})
	for _, found := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(text), -1) {
		r, ok := rules[found[1]]
		if !ok {
			t.Errorf("%s is not tried", found[1])
		}
		for series := range r.values {
			if _, ok := exposed[series]; !ok {
				t.Errorf("%s: no such series is exposed: %s", found[1], series)
			}
		}
		r.also = append(slices.Clone(r.also), found[1])
		write(&b, found[1], exposed, r)
	}
	write(&b, "hdsd is gone", exposed, rule{values: map[string]string{"hdsd_ready": gone}, also: []string{"HdsdDown"}})
	write(&b, "hdsd never was there", nil, rule{also: []string{"HdsdDown"}})
	tests := filepath.Join(t.TempDir(), "tests.yaml")
	if err := os.WriteFile(tests, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "test", "rules", tests).CombinedOutput(); err != nil || !strings.Contains(string(out), "SUCCESS") {
		t.Errorf("%v\n%s", err, out)
	}
}

// write writes a test that holds which alerts fire.
func write(b *strings.Builder, name string, exposed map[string]string, r rule) {
	fmt.Fprintf(b, "- name: %q\n  interval: 1m\n  input_series:\n", name)
	for series, value := range exposed {
		changed, ok := r.values[series]
		if !ok {
			changed = value + "x600"
		}
		labels := `job="hdsd",instance="a:18080"`
		if metric, more, ok := strings.Cut(series, "{"); ok {
			series, labels = metric, labels+","+strings.TrimSuffix(more, "}")
		}
		if _, other, ok := strings.Cut(labels, `,instance="b`); ok {
			labels = `job="hdsd",instance="b` + other
		}
		changed = strings.ReplaceAll(changed, "x600", map[string]string{"": "x60", "5h": "x600", "50h": "x3600"}[r.at])
		fmt.Fprintf(b, "  - {series: '%s{%s}', values: '%s'}\n", series, labels, changed)
	}
	fmt.Fprintf(b, "  promql_expr_test:\n  - expr: count by (alertname) (ALERTS{alertstate=\"firing\"})\n    eval_time: %s\n", cmp.Or(r.at, "30m"))
	if len(r.also) == 0 {
		return
	}
	b.WriteString("    exp_samples:\n")
	for _, alert := range r.also {
		fmt.Fprintf(b, "    - {labels: '{alertname=\"%s\"}', value: 1}\n", alert)
	}
}

// exposed is what a coordinator exposes while all is well: values by series. What the rules
// do not name is left out.
func exposed(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	own := pki.New(t, "one").Issue(t, "hdsd", pki.Until(time.Now().AddDate(0, 1, 0)))
	dir := t.TempDir()
	pki.Save(t, dir, map[string]string{"cert": own.Chain, "key": own.Key})
	s := newSite(t, fmt.Sprintf(`http: {address: "127.0.0.1:0", tls: {certificate_chain_file: %s/cert, private_key_file: %s/key}}
probes: {address: "127.0.0.1:0"}
data_planes: {eds_directory: %s/eds}
relay: {upstream: {api_config_source: {api_type: AGGREGATED_GRPC, transport_api_version: V3, grpc_services: [{google_grpc: {target_uri: "127.0.0.1:1", stat_prefix: x}}]}}}
`, dir, dir, dir), "a", "b", "c")
	var answer string
	eventually(t, "three votes, and a site where all is well", func() bool {
		answer = fetch(t, "http://"+s.ProbesAddress()+"/metrics")
		return strings.Contains(answer, `hdsd_endpoints_by_voters{voters="3+"} 1`) && strings.Contains(answer, "hdsd_checkers_connected 3") && strings.Contains(answer, "hdsd_ready 1")
	})
	found := map[string]string{}
	for line := range strings.Lines(answer) {
		line = strings.TrimSpace(line)
		end := strings.LastIndexByte(line, ' ')
		if end < 0 {
			continue
		}
		series, value := line[:end], line[end+1:]
		if strings.HasPrefix(series, "hdsd_") {
			metric, _, _ := strings.Cut(series, "{")
			number, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), metric) {
				found[series] = strconv.FormatFloat(number, 'f', -1, 64)
			}
		}
	}
	return found
}
