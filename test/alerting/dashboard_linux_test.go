package alerting

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hdsd/test/debian"
)

// dashboard is what Grafana reads of deploy/grafana/hdsd.json, as far as hdsd's uses it.
type dashboard struct {
	UID           string `json:"uid"`
	Title         string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type string }
	}
	Panels []struct {
		ID          int
		Type        string
		Title       string
		Description string
		GridPos     struct{ H, W, X, Y int }
		Datasource  struct{ Type, UID string }
		Targets     []struct{ RefID, Expr, LegendFormat string }
	}
}

// TestTheDashboard has panels that Grafana can lay out, expressions that Prometheus can read,
// and nothing but metrics that hdsd has. No real Grafana is asked.
func TestTheDashboard(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "grafana", "hdsd.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 30 || len(d.Panels) < 20 {
		t.Errorf("%s %q, schema %d, %d panels", d.UID, d.Title, d.SchemaVersion, len(d.Panels))
	}
	metrics, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{} // by metric
	for _, row := range regexp.MustCompile("(?m)^\\| `(hdsd_\\w+)` \\| \\w+ \\| ([^|]*) \\|").FindAllStringSubmatch(string(metrics), -1) {
		labels[row[1]] = row[2] + " `instance`"
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	var rules strings.Builder
	rules.WriteString("groups: [{name: dashboard, rules: [\n")
	for _, p := range d.Panels {
		at := p.GridPos
		if ids[p.ID] || p.ID == 0 || p.Title == "" || !slices.Contains([]string{"row", "stat", "timeseries"}, p.Type) || at.W < 1 || at.H < 1 || at.X < 0 || at.X+at.W > 24 {
			t.Errorf("panel %d %q of type %s at %+v", p.ID, p.Title, p.Type, at)
		}
		ids[p.ID] = true
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%q lies over %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Description == "" || p.Datasource.UID != "${datasource}" {
			t.Errorf("%q has %d targets, from %q: %q", p.Title, len(p.Targets), p.Datasource.UID, p.Description)
		}
		for i, target := range p.Targets {
			has := ""
			for _, name := range regexp.MustCompile(`\b(?:hdsd|process)_[a-z0-9_]+`).FindAllString(target.Expr, -1) {
				found, ok := labels[strings.TrimSuffix(name, "_bucket")]
				if has += found; !ok && strings.HasPrefix(name, "hdsd_") {
					t.Errorf("%q names %s, which is no metric", p.Title, name)
				}
			}
			for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if !strings.Contains(has, "`"+label[1]+"`") {
					t.Errorf("%q shows the label %s, which its metrics do not have", p.Title, label[1])
				}
			}
			expr, err := json.Marshal(strings.ReplaceAll(target.Expr, "$instance", ".*"))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&rules, "{record: \"panel:%d:%d\", expr: %s},\n", p.ID, i, expr)
		}
	}
	rules.WriteString("]}]\n")
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool := filepath.Join(debian.Unpacked(t, "usr/bin/promtool", "prometheus"), "usr", "bin", "promtool")
	if out, err := exec.Command(promtool, "check", "rules", path).CombinedOutput(); err != nil || !strings.Contains(string(out), "SUCCESS") {
		t.Errorf("%v\n%s", err, out)
	}
}
