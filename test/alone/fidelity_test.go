package alone

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/validate"
)

var update = flag.Bool("update", false, "write docs/reference/fidelity.md, and with HDSD_ALONE=full the results in it")

// judged are the messages of which every field is judged.
var judged = []proto.Message{
	&clusterv3.Cluster{}, &clusterv3.Cluster_CommonLbConfig{}, &clusterv3.Cluster_RoundRobinLbConfig{}, &clusterv3.Cluster_LeastRequestLbConfig{},
	&corev3.HealthCheck{}, &corev3.HealthCheck_HttpHealthCheck{}, &corev3.HealthCheck_TcpHealthCheck{}, &corev3.HealthCheck_GrpcHealthCheck{},
	&corev3.HealthCheck_RedisHealthCheck{}, &corev3.HealthCheck_CustomHealthCheck{}, &corev3.HealthCheck_Payload{}, &corev3.HealthCheck_TlsOptions{},
	&endpointv3.ClusterLoadAssignment{}, &endpointv3.ClusterLoadAssignment_Policy{}, &endpointv3.LocalityLbEndpoints{}, &endpointv3.LbEndpoint{},
	&endpointv3.Endpoint{}, &endpointv3.Endpoint_HealthCheckConfig{},
}

// shortName is a field's name without packages, and without the message around its own but
// where that tells two apart.
func shortName(f protoreflect.FieldDescriptor) string {
	name := string(f.FullName())
	for _, prefix := range []string{"envoy.config.cluster.v3.", "envoy.config.core.v3.", "envoy.config.endpoint.v3.", "HealthCheck.", "ClusterLoadAssignment."} {
		if short := strings.TrimPrefix(name, prefix); strings.Contains(short, ".") {
			name = short
		}
	}
	return name
}

// TestEachFieldIsJudged: no field of the messages is left out, and none is judged that they do
// not have.
func TestEachFieldIsJudged(t *testing.T) {
	known := map[string]bool{}
	for _, m := range judged {
		fields := m.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			name := shortName(fields.Get(i))
			known[name] = true
			count := len(slices.DeleteFunc(slices.Clone(Fields), func(j Judgement) bool { return j.Field != name }))
			if count != 1 {
				t.Errorf("%s is judged %d times: say in Fields what becomes of it when hdsd checks the cluster", name, count)
			}
		}
	}
	for _, j := range Fields {
		if !known[j.Field] {
			t.Errorf("%s is judged, and is no field", j.Field)
		}
	}
}

// TestProofsExist: the cases and tests that judgements name are there.
func TestProofsExist(t *testing.T) {
	for _, j := range Fields {
		for proof := range strings.SplitSeq(j.Proof, "; ") {
			switch {
			case proof == "" || slices.ContainsFunc(all, func(c Case) bool { return c.Name == proof }):
			case strings.HasPrefix(proof, "Test") && exec.CommandContext(t.Context(), "grep", "-rq", "^func "+proof+"(", "../fleet").Run() == nil:
			default:
				t.Errorf("%s: there is no case %q", j.Field, proof)
			}
		}
	}
}

// TestLostFieldsAreThoseOfValidate: validate warns of each field that is lost, and of no other.
func TestLostFieldsAreThoseOfValidate(t *testing.T) {
	var warned, lost []string
	for _, field := range validate.LostFields {
		last := field.Field[strings.LastIndex(string(field.Field), ".")+1:]
		warned = append(warned, string(last))
	}
	for _, j := range Fields {
		if j.Verdict == Lost {
			lost = append(lost, j.Field[strings.LastIndex(j.Field, ".")+1:])
		}
	}
	slices.Sort(warned)
	slices.Sort(lost)
	if lost = slices.Compact(lost); !slices.Equal(lost, warned) {
		t.Errorf("lost are %v, and validate warns of %v", lost, warned)
	}
}

const (
	page    = "../../docs/reference/fidelity.md"
	results = "testdata/results.json"
)

// TestThePageIsUpToDate: docs/reference/fidelity.md is what the judgements and the results of
// the last full run make.
func TestThePageIsUpToDate(t *testing.T) {
	want := document(t)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is out of date: go test ./test/alone -run TestThePage -update", page)
	}
}

func document(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(introduction)
	counts := map[Verdict]int{}
	for _, j := range Fields {
		counts[j.Verdict]++
	}
	fmt.Fprintf(&b, "Of %d fields, %d are the same, %d differ on purpose, %d are lost, %d are left to Envoy, and %d have no bearing.\n\n"+
		"| field | verdict | played as | what to know |\n| --- | --- | --- | --- |\n", len(Fields), counts[Same], counts[Differs], counts[Lost], counts[Left], counts[NoBearing])
	for _, j := range Fields {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", j.Field, j.Verdict, j.Proof, explained(j))
	}
	writeResults(t, &b)
	return b.String()
}

// explained is what to know of a field; of a lost one, what validate says.
func explained(j Judgement) string {
	for _, lost := range validate.LostFields {
		if j.Verdict == Lost && strings.HasSuffix(j.Field, string(lost.Field[strings.LastIndex(string(lost.Field), "."):])) {
			return strings.TrimPrefix(j.Why+": ", ": ") + lost.Effect + ". The way out: " + lost.Remedy
		}
	}
	return j.Why
}

// writeResults writes a table of the results of the last full run.
func writeResults(t *testing.T, b *strings.Builder) {
	t.Helper()
	text, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	var last []Result
	if err := json.Unmarshal(text, &last); err != nil {
		t.Fatal(err)
	}
	if len(last) == 0 {
		return
	}
	b.WriteString(played)
	b.WriteString("| release | same | differ on purpose | lost | left to Envoy | failed requests alone | through hdsd |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, release := range releases {
		counts, sent, failed := map[Verdict]int{}, [2]int{}, [2]int{}
		for _, r := range last {
			if r.Version != release {
				continue
			}
			counts[verdictOf(r)]++
			for plane := range sent {
				sent[plane] += r.Sent[plane]
				failed[plane] += r.Failed[plane]
			}
		}
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %d of %d | %d of %d |\n", release, counts[Same], counts[Differs], counts[Lost], counts[Left],
			failed[Alone], sent[Alone], failed[Through], sent[Through])
	}
	b.WriteString("\n| case | verdict | failed alone | through hdsd |\n| --- | --- | --- | --- |\n")
	for _, r := range last {
		if r.Version == releases[len(releases)-1] {
			fmt.Fprintf(b, "| %s | %s | %d of %d | %d of %d |\n", r.Case, verdictOf(r), r.Failed[Alone], r.Sent[Alone], r.Failed[Through], r.Sent[Through])
		}
	}
}

// verdictOf is what a played case is held to.
func verdictOf(r Result) Verdict {
	for i := range all {
		if all[i].Name == r.Case {
			return all[i].verdict(r.Version)
		}
	}
	return ""
}

// saveResults keeps the results of a full run.
func saveResults(t *testing.T, played []Result) {
	t.Helper()
	slices.SortFunc(played, func(a, b Result) int { return strings.Compare(a.Version+a.Case, b.Version+b.Case) })
	text, err := json.MarshalIndent(played, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(results), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(results, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

const introduction = `# Fidelity

A cluster does through hdsd what it did with each Envoy's own health checks, but for the fields below that say
otherwise; ` + "`hdsd validate`" + ` warns of them. ` + "`go test ./test/alone`" + ` plays each case with an Envoy alone and with one behind
hdsd, and ` + "`TestRestarts`" + `, ` + "`TestLateCheckers`" + ` (no checker is able), ` + "`TestNames`" + `, ` + "`TestFamilies`" + ` (IPv4 and IPv6),
` + "`TestCheckersWithoutIPv6`" + `, ` + "`TestSecrets`" + ` (SDS), ` + "`TestLeases`" + `, ` + "`TestLoadReports`" + `, and ` + "`TestEachWay`" + ` (relay, state of the
world).

- **same:** the named case or Go test plays alike. Without one, hdsd passes the field on, and nobody has played it.
- **differs on purpose:** the row says why.
- **lost:** the field has no effect while hdsd checks the cluster.
- **left to Envoy:** the cluster or endpoint keeps Envoy's own checks.
- **no bearing:** on health, hosts or weights.

hdsd does not imitate ` + "`slow_start_config`" + ` by steps of ` + "`load_balancing_weight`" + `: each would be a push to every data plane,
and moves hash rings and priorities.

## Fields

`

const played = `
## Cases

The last full run (` + "`HDSD_ALONE=full go test ./test/alone -update`" + `): three Envoys of each release as checkers, checks and
reports every 0.25 s, all cases at once on two shared cores. Failed requests include those that have to fail. Through
hdsd, requests also fail until the next report. Most that fail alone are of "interval with traffic": after its first
request, an Envoy still waits for the end of ` + "`no_traffic_interval`" + `. The second table is of the latest release.

`
