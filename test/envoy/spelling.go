package envoy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/internal/envoytypes"
)

// Spelling is a case of internal/yamlpb/testdata/envoy.txt: fields of a cluster
// as a file has them, and what comes of them.
type Spelling struct {
	Form, Name, Fields string // Form is yaml or json
	Envoy, Hdsd        bool   // takes it
	Want               *clusterv3.Cluster
}

// Spellings reads the table.
func Spellings(t testing.TB) []Spelling {
	t.Helper()
	envoytypes.Register() // the table has some of them
	root, err := Repository()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "internal", "yamlpb", "testdata", "envoy.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var all []Spelling
	for part := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		if strings.HasPrefix(part, "#") {
			continue
		}
		one, err := spelling(part)
		if err != nil {
			t.Fatalf("%s: %v", part, err)
		}
		all = append(all, one)
	}
	return all
}

func spelling(part string) (one Spelling, err error) {
	head, rest, _ := strings.Cut(part, "\n")
	fields, want, found := strings.Cut("\n"+rest, "\n= ")
	one.Form, one.Name, _ = strings.Cut(head, ": ")
	one.Fields = strings.TrimPrefix(fields, "\n")
	if !found || one.Name == "" || one.Form != "yaml" && one.Form != "json" {
		return one, fmt.Errorf("is no case")
	}
	one.Envoy, one.Hdsd = true, true
	switch {
	case want == "refused":
		one.Envoy, one.Hdsd = false, false
		return one, nil
	case strings.HasPrefix(want, "refused by hdsd "):
		one.Hdsd, want = false, strings.TrimPrefix(want, "refused by hdsd ")
	case strings.HasPrefix(want, "refused by Envoy "):
		one.Envoy, want = false, strings.TrimPrefix(want, "refused by Envoy ")
	}
	one.Want = &clusterv3.Cluster{}
	return one, protojson.Unmarshal([]byte(want), one.Want)
}

// Bootstrap is one with the cases as clusters, all of one form. Its names are
// those that Named gives.
func Bootstrap(cases ...Spelling) []byte {
	if cases[0].Form == "json" {
		return []byte(`{"static_resources": {"clusters": [` + clusters(cases, "") + "]}}")
	}
	return []byte("static_resources:\n  clusters:\n" + clusters(cases, ""))
}

// Response is a DiscoveryResponse with the cases as clusters, as Bootstrap has
// them.
func Response(cases ...Spelling) []byte {
	if cases[0].Form == "json" {
		return []byte(`{"resources": [` + clusters(cases, `"@type": "`+resourcev3.ClusterType+`", `) + "]}")
	}
	return []byte("resources:\n" + clusters(cases, "    \"@type\": "+resourcev3.ClusterType+"\n"))
}

// Named is the name of a case's cluster.
func Named(i int) string { return fmt.Sprintf("case-%d", i) }

func clusters(cases []Spelling, typed string) string {
	all := make([]string, len(cases))
	for i, s := range cases {
		if s.Form == "json" {
			all[i] = fmt.Sprintf("{\"name\": %q, %s%s}", Named(i), typed, s.Fields)
		} else {
			all[i] = "  - name: " + Named(i) + "\n" + typed + "    " + strings.ReplaceAll(s.Fields, "\n", "\n    ") + "\n"
		}
	}
	if cases[0].Form == "json" {
		return strings.Join(all, ", ")
	}
	return strings.Join(all, "")
}
