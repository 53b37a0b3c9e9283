package main

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/anypb"
)

func TestClasses(t *testing.T) {
	for name, test := range map[string]struct {
		of   judged
		want class
	}{
		"published and taken":                  {judged{published: true}, good},
		"published as refused as before":       {judged{published: true, given: "no", envoy: "no"}, asItCame},
		"published and only thereby refused":   {judged{published: true, given: "no"}, spoiled},
		"published, and Envoy does not answer": {judged{published: true, given: "Caught Segmentation fault"}, spoiled},
		"published, and better than it was":    {judged{published: true, envoy: "malformed IP address"}, good},
		"published in part":                    {judged{published: true, fewer: true}, thinned},
		"published but for what Envoy refuses": {judged{published: true, fewer: true, envoy: "no"}, good},
		"refused by both":                      {judged{ours: "no", envoy: "no"}, bad},
		"refused by hdsd alone":                {judged{ours: "no"}, lost},
		"refused for a file that is not there": {judged{ours: "no", envoy: "paths must refer to an existing path in the system: 'a' does not exist"}, unjudged},
		"published, with a secret elsewhere":   {judged{published: true, given: "Unknown static secret: a", envoy: "Unknown static secret: a"}, unjudged},
	} {
		if got := test.of.class(); got != test.want {
			t.Errorf("%s: class %d, want %d", name, got, test.want)
		}
	}
}

func TestAnOutcomeIsNoted(t *testing.T) {
	served := &outcome{
		published: map[string]*anypb.Any{clusterURL + " a": {}},
		clusters: map[string]standing{
			"a": {Name: "a", Checked: true, Endpoints: 3, Quarantined: []struct{ Address, Reason string }{{"db:1", "a name"}, {"db:2", "a name"}}},
			"b": {Name: "b", Quarantined: []struct{ Address, Reason string }{{"", "set.yaml:3: resources[1].x: unknown"}}},
		},
	}
	a := judged{resource: resource{url: clusterURL, name: "a"}}
	a.take(served, 0)
	a.take(served, checking)
	a.take(served, naming)
	if !a.published || a.checked != [variants]bool{true, true, true} || a.endpoints != [variants]int{1, 1, 1} || !slices.Equal(a.aside, []string{"a name"}) {
		t.Errorf("a is %+v", a)
	}
	b := judged{resource: resource{url: clusterURL, name: "b"}}
	b.take(served, 0)
	if b.published || b.ours != "set.yaml:3: resources[1].x: unknown" {
		t.Errorf("b is %+v", b)
	}
	refused := judged{resource: resource{url: clusterURL, name: "b"}}
	refused.take(&outcome{refused: "hdsd: source corpus: set.yaml: none can be read\nset.yaml:2: a: bad\nset.yaml:3: b: worse\n"}, 0)
	if refused.published || refused.ours != "set.yaml:3: b: worse" {
		t.Errorf("of a refused file, b is %+v", refused)
	}
}

func TestReasonsOfOneKindAreOne(t *testing.T) {
	for _, pair := range [][2]string{
		{`set.yaml:12: resources[3].type: needs one of STATIC, not the text "eds"`, `set.json:9: resources[4].type: needs one of STATIC, not the text "dns"`},
		{`endpoint.address: "db" is not an IP address`, `endpoint.address: "web" is not an IP address`},
		{"goo.gle/debugonly x { }", "goo.gle/debugstr x { }"},
		{"set.yaml:1: a: resources[1].x: bad", "set.yaml:2: b: static_resources.clusters[2].x: bad"},
		{"the file /etc/a/ca.pem is not listed", "the file /var/b/ca.pem is not listed"},
	} {
		if a, b := kindOfReason(pair[0], "a"), kindOfReason(pair[1], "b"); a != b || a == "" {
			t.Errorf("%q and %q are not the same kind", a, b)
		}
	}
}

func TestEnvoysCauseIsOneLine(t *testing.T) {
	const out = "[2026-01-02 03:04:05.678][12][critical][main] [source/server/server.cc:76] error initializing configuration 'x.yaml': no\nsuch thing\n"
	if got := cause(out, "exit status 1"); got != "no such thing" {
		t.Errorf("the cause is %q", got)
	}
	if got := cause("", "exit status 1"); got != "exit status 1" {
		t.Errorf("where nothing is said, the cause is %q", got)
	}
}

// What a resource names has to be around it, so that Envoy judges that resource only.
func TestAWorldHoldsWhatAResourceNames(t *testing.T) {
	n := documents("", []byte(`{name: a, eds_cluster_config: {eds_config: {api_config_source: {cluster_names: [rest], grpc_services: [{envoy_grpc: {cluster_name: xds}}]}}}}`))[0]
	got := companions(resource{url: clusterURL, name: "a", node: n})
	if want := []string{management, "xds", "rest"}; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("around it are %v, want %v", got, want)
	}
	secrets := documents("", []byte("[{name: s}]"))[0]
	text, err := world(resource{node: n}, secrets)
	if err != nil || !strings.Contains(string(text), `{name: s}`) || !strings.Contains(string(text), `"xds"`) {
		t.Errorf("the world is\n%s\n%v", text, err)
	}
}

func TestTheReportCountsAndNames(t *testing.T) {
	r := resource{url: clusterURL, name: "a|b"}
	page := report([]*survey{{
		project: project{name: "example.com/p", version: "v1"}, files: 2, sets: 2, refused: 1,
		all: []*judged{
			{resource: r, project: "example.com/p", file: "x.yaml", ours: "no\nway"},
			{resource: r, published: true, checked: [variants]bool{false, true}, endpoints: [variants]int{0, 4}},
			{resource: r, published: true, checked: [variants]bool{true, true}, endpoints: [variants]int{1, 2}, aside: []string{`"x" is a name`, `"y" is a name`}},
			{resource: r, published: true, given: "bad", envoy: "bad"},
			{resource: resource{url: assignmentURL}, ours: "no", envoy: "no"},
		},
	}})
	for _, want := range []string{
		"| example.com/p | v1 | 2 | 2 | 1 | 4 | 1 | 3 | 1 | 0 | 0 | 1 | **1** | 0 | 1 | 2 | 6 |",
		`| example.com/p | x.yaml | Cluster | a\|b | no way |`,
		"| 1 | no | no |", "| 1 | bad |", "| 1 | … is a name |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no line %s:\n%s", want, page)
		}
	}
}
