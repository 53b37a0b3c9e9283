package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
)

func text(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestConfigurationListsEachField: the reference names every field of the
// configuration, and none that does not exist.
func TestConfigurationListsEachField(t *testing.T) {
	page := text(t, "docs/reference/configuration.md")
	config := (&configv1.Config{}).ProtoReflect().Descriptor()
	for name := range fields(config, "") {
		last := name[strings.LastIndex(name, ".")+1:]
		if !strings.Contains(page, "`"+last) && !strings.Contains(page, "."+last+"`") {
			t.Errorf("configuration.md does not name %s", name)
		}
	}
	known := fields(config, "")
	cells := regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(page, -1)
	for _, cell := range cells {
		for _, found := range span.FindAllStringSubmatch(cell[1], -1) {
			if name := strings.ReplaceAll(found[1], "[]", ""); !known[name] {
				t.Errorf("configuration.md names %s, which is no field", name)
			}
		}
	}
	if len(cells) < 30 {
		t.Errorf("only %d rows were found", len(cells))
	}
}

// TestLimitsListsEachLimit: the page of limits has one row for each field of the limits, with
// its default, and none for anything else.
func TestLimitsListsEachLimit(t *testing.T) {
	rows := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]*) \\|").FindAllStringSubmatch(text(t, "docs/operations/limits.md"), -1) {
		if rows[row[1]] != "" {
			t.Errorf("limits.md lists %s twice", row[1])
		}
		rows[row[1]] = row[2]
	}
	path := filepath.Join(t.TempDir(), "hdsd.yaml")
	if err := os.WriteFile(path, []byte("sources: [{name: local, config_source: {path: clusters.yaml}}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, problems := config.Load(path)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	limits := loaded.GetLimits().ProtoReflect()
	all := limits.Descriptor().Fields()
	for i := range all.Len() {
		name, byDefault := string(all.Get(i).Name()), limits.Get(all.Get(i)).String()
		switch {
		case rows[name] == "":
			t.Errorf("limits.md does not list %s", name)
		case name == "max_message_bytes" || byDefault == "0": // in words
		case !regexp.MustCompile(`^` + byDefault + `\b`).MatchString(rows[name]):
			t.Errorf("limits.md says that %s is %q, and it is %s", name, rows[name], byDefault)
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("limits.md lists %s, which is no limit", name)
	}
}

// fields lists the fields of a message and, of hdsd's own messages, those below.
// Policies hold fields of others.
func fields(message protoreflect.MessageDescriptor, prefix string) map[string]bool {
	all := map[string]bool{}
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		name := prefix + string(field.Name())
		all[name] = true
		below := field.Message()
		if below == nil || field.IsMap() || name == "policies" || strings.Count(name, ".") > 0 || below.ParentFile().Package() != message.ParentFile().Package() {
			continue
		}
		for each := range fields(below, name+".") {
			all[each] = true
		}
	}
	return all
}

// TestAlertsAreExplained: alerts.md has a heading with a first step for each alert of
// alerts.yaml, whose runbook_url leads there.
func TestAlertsAreExplained(t *testing.T) {
	names := func(pattern, path string) (all []string) {
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text(t, path), -1) {
			all = append(all, found[1])
		}
		slices.Sort(all)
		return all
	}
	rules, steps := names(`- alert: (\w+)`, "docs/alerts.yaml"), names(`(?m)^### (\w+)$`, "docs/operations/alerts.md")
	if len(rules) == 0 || !slices.Equal(rules, steps) {
		t.Errorf("alerts.yaml has %v, alerts.md explains %v", rules, steps)
	}
	var runbooks []string
	for _, name := range rules {
		runbooks = append(runbooks, "docs/operations/alerts.md#"+strings.ToLower(name))
	}
	slices.Sort(runbooks)
	if found := names(`runbook_url: (\S+)`, "docs/alerts.yaml"); !slices.Equal(found, runbooks) {
		t.Errorf("alerts.yaml has the runbooks %v, want %v", found, runbooks)
	}
}

// TestOperatorsAreToldEachWay: what needs attention as one of these kinds is a notification and an
// event, moves a metric, and makes an alert fire. The documents say so.
func TestOperatorsAreToldEachWay(t *testing.T) {
	notifications, rules := text(t, "docs/operations/notifications.md"), text(t, "docs/alerts.yaml")
	for kind, signals := range map[string]struct{ event, metric, selector, alert string }{
		"CHECKER_SILENT":       {"checker_silent", "hdsd_checkers_silent", "", "HdsdCheckerSilent"},
		"DATA_PLANES_REFUSING": {"data_planes_refusing", "hdsd_data_planes_refusing", "", "HdsdRefusedByDataPlanes"},
		"NOT_CHECKED":          {"quarantined", "hdsd_clusters_by_state", `{state="unchecked"}`, "HdsdEndpointsNotChecked"},
		"NO_HEALTHY_ENDPOINT":  {"no_healthy_endpoint", "hdsd_clusters_by_state", `{state="none_healthy"}`, "HdsdClustersWithoutHealth"},
		"PANIC":                {"cluster_panic", "hdsd_clusters_in_panic", "", "HdsdClustersInPanic"},
		"SOURCE_BROKEN":        {"source_broken", "hdsd_sources_broken", "", "HdsdSourceBroken"},
		"TOO_FEW_CHECKERS":     {"too_few_checkers", "hdsd_endpoints_short_of_votes", "", "HdsdTooFewCheckers"},
	} {
		if _, known := configv1.Notify_Kind_value[kind]; !known || !strings.Contains(notifications, "\n### "+kind+"\n") {
			t.Errorf("%s is not a kind of notification: configured %t", kind, known)
		}
		for page, row := range map[string]string{
			"docs/reference/api.md": "[A-Z_, ]*" + kind, "docs/reference/events.md": "`" + signals.event, "docs/reference/metrics.md": "`" + signals.metric,
		} {
			if !regexp.MustCompile(`\n\| ` + row + `\b`).MatchString(text(t, page)) {
				t.Errorf("%s has no row for %s", page, kind)
			}
		}
		if rule := regexp.MustCompile("alert: " + signals.alert + `\n +expr: (.*)\n`).FindStringSubmatch(rules); rule == nil || !strings.Contains(rule[1], signals.metric+signals.selector+" > 0") {
			t.Errorf("the alert %s of %s has the expression %q", signals.alert, kind, rule)
		}
	}
}

// TestTheIndexHasEachDocument: docs/README.md links to every document.
func TestTheIndexHasEachDocument(t *testing.T) {
	index := text(t, "docs/README.md")
	for _, d := range documents(t) {
		name, isBelow := strings.CutPrefix(d.path, "docs/")
		if isBelow && name != "README.md" && !strings.Contains(index, "("+name+")") {
			t.Errorf("docs/README.md has no link to %s", d.path)
		}
	}
}

// TestNamedMetricsExist: every metric that a document names is in metrics.md.
func TestNamedMetricsExist(t *testing.T) {
	metric := regexp.MustCompile(`\bhdsd_[a-z0-9_]+`)
	page := text(t, "docs/reference/metrics.md")
	for _, d := range documents(t) {
		if d.path == "CHANGELOG.md" {
			continue
		}
		for _, c := range d.code() {
			for _, name := range metric.FindAllString(c.text, -1) {
				name = strings.TrimSuffix(name, "_bucket")
				if !strings.HasSuffix(name, "_") && !strings.Contains(page, "| `"+name+"` |") {
					t.Errorf("%s:%d names %s, which metrics.md does not have", d.path, c.line, name)
				}
			}
		}
	}
}
