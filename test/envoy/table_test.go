package envoy

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/hds/specifier"
	"hdsd/health"
)

var (
	full   = flag.Bool("full", false, "measure the raw effect of every hostile value afresh, on older releases too, and write testdata/effects.txt and docs/internals/envoy-hds.md")
	update = flag.Bool("update", false, "write the table in docs/internals/envoy-hds.md")
)

const (
	effectsFile = "testdata/effects.txt"
	marker      = "<!-- Below this line: written by go test ./test/envoy -run TestTable -update -->\n"
)

// translated is what hdsd makes of a trial.
type translated struct {
	outcome  string // sent, sent without it, not checked, or quarantined and why
	needs    []health.Ability
	clusters []*healthv3.ClusterHealthCheck
}

func (c *trial) translate() translated {
	s := c.source
	cluster := specifier.Translate(s.name, s.config, s.assignment, s.checks, c.options)
	t := translated{needs: cluster.Needs, outcome: "sent"}
	var items []specifier.Item
	for i := range cluster.Endpoints {
		items = append(items, specifier.Item{Cluster: cluster, Endpoint: i, ID: health.EndpointID(i)})
	}
	t.clusters = specifier.Build(items, time.Second).Message().GetClusterHealthChecks()
	switch {
	case len(cluster.Excluded) > 0:
		t.outcome = "quarantined: " + cluster.Excluded[0].Reason
	case len(t.clusters) == 0:
		t.outcome = "not checked"
	}
	return t
}

// shape is a message without what tells one trial from another.
func shape(clusters []*healthv3.ClusterHealthCheck) string {
	var out strings.Builder
	for _, c := range clusters {
		c = proto.CloneOf(c)
		name, _, _ := strings.Cut(c.GetClusterName(), "#")
		c.ClusterName = ""
		text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(c) // what cannot be encoded has no shape
		out.WriteString(strings.ReplaceAll(string(text), name, "name of any length"[:min(18, len(name)+5)]))
	}
	return out.String()
}

// row is a line of the table: values that do the same and are treated alike.
type row struct {
	field, outcome string
	effect         effect
	values         []string
}

func rows(trials []*trial, effects map[string]effect) []*row {
	absent := map[string]string{} // shape without the field
	var all []*row
	index := map[string]*row{}
	for _, c := range trials {
		t := c.translate()
		field := c.root + "." + c.field
		if c.value == "absent" {
			absent[field] = c.sameLength(t)
		} else if without, ok := absent[field]; ok && t.outcome == "sent" && c.sameLength(t) == without {
			t.outcome = "sent without it"
		}
		kind, _, _ := strings.Cut(t.outcome, ":")
		if needs := t.unusual(); t.outcome == "sent" && needs != "" {
			t.outcome += " to checkers with " + needs
			kind = t.outcome
		}
		key := field + "\x00" + string(effects[c.name()]) + "\x00" + kind
		if index[key] == nil {
			index[key] = &row{field: field, outcome: t.outcome, effect: effects[c.name()]}
			all = append(all, index[key])
		}
		index[key].values = append(index[key].values, c.value)
	}
	return all
}

// sameLength is the shape of what is sent, by which trials are compared.
func (c *trial) sameLength(t translated) string {
	plain := *c
	s := *c.source
	s.name = "any"
	plain.source = &s
	return shape(plain.translate().clusters)
}

func (t translated) unusual() string {
	var needs []string
	for _, need := range t.needs {
		if need != health.HTTP && need != health.TCP {
			needs = append(needs, string(need))
		}
	}
	return strings.Join(needs, ", ")
}

func table(trials []*trial, effects map[string]effect) string {
	count := map[effect]int{}
	for _, c := range trials {
		count[effects[c.name()]]++
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\n%d values in %d fields, sent raw to Envoy %s: %d end the process, %d silence it, %d do no harm.\n\n",
		len(trials), fieldsOf(trials), Version, count[killed], count[silenced]+count[blinded], count[fine])
	out.WriteString("| field | values | raw | hdsd |\n| --- | --- | --- | --- |\n")
	for _, r := range rows(trials, effects) {
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", cell(r.field), cell(strings.Join(r.values, ", ")), r.effect, cell(r.outcome))
	}
	return out.String()
}

func fieldsOf(trials []*trial) int {
	seen := map[string]bool{}
	for _, c := range trials {
		seen[c.root+"."+c.field] = true
	}
	return len(seen)
}

func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "*", `\*`, "_", `\_`).Replace(s)
}

// TestTable holds docs/internals/envoy-hds.md to what hdsd does with each value.
func TestTable(t *testing.T) {
	l := newLab(t)
	trials := l.trials(t)
	checkNames(t, trials)
	effects := readEffects(t)
	root, err := Repository()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "docs", "internals", "envoy-hds.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, have, ok := strings.Cut(string(text), marker)
	if !ok {
		t.Fatalf("%s has no line %q", path, marker)
	}
	want := strings.ReplaceAll(table(trials, effects), l.file, "/a/file.pem")
	if *update {
		if err := os.WriteFile(path, []byte(head+marker+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want {
		t.Errorf("docs/internals/envoy-hds.md is stale (%s); write it by go test ./test/envoy -run TestTable -update, and read the diff", firstDifference(have, want))
	}
}

func firstDifference(have, want string) string {
	a, b := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("it says %q, where it should say %q", a[i], b[i])
		}
	}
	return "it is too short or too long"
}

// checkNames sees that trials can be told apart by name.
func checkNames(t *testing.T, trials []*trial) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range trials {
		if seen[c.name()] {
			t.Errorf("there are two trials called %s", c.name())
		}
		seen[c.name()] = true
	}
}

func readEffects(t *testing.T) map[string]effect {
	t.Helper()
	f, err := os.Open(effectsFile)
	if err != nil {
		t.Fatalf("%v; measure by go test ./test/envoy -run TestRaw -full -timeout 1h", err)
	}
	defer f.Close()
	effects := map[string]effect{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		e, name, _ := strings.Cut(lines.Text(), "\t")
		effects[name] = effect(e)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return effects
}

func writeEffects(t *testing.T, trials []*trial, effects map[*trial]effect) {
	t.Helper()
	var lines []string
	for _, c := range trials {
		lines = append(lines, fmt.Sprintf("%s\t%s\n", effects[c], c.name()))
	}
	if err := os.MkdirAll(filepath.Dir(effectsFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(effectsFile, []byte(strings.Join(slices.Clip(lines), "")), 0o644); err != nil {
		t.Fatal(err)
	}
}
