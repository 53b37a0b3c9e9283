package file_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/source"
	"hdsd/source/file"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// describe puts what was loaded into lines.
func describe(set *source.Set, err error) string {
	if err != nil {
		return "error:\n" + err.Error() + "\n"
	}
	var text strings.Builder
	for _, c := range set.Clusters {
		fmt.Fprintf(&text, "%s", c.Name)
		if c.ServiceName != c.Name {
			fmt.Fprintf(&text, " service=%s", c.ServiceName)
		}
		if c.Config != nil {
			fmt.Fprintf(&text, " config checks=%d", len(c.HealthChecks))
		}
		if c.Assignment != nil {
			endpoints := 0
			for _, locality := range c.Assignment.Message().GetEndpoints() {
				endpoints += len(locality.GetLbEndpoints())
			}
			fmt.Fprintf(&text, " endpoints=%d", endpoints)
		}
		if c.Rejected != "" {
			fmt.Fprintf(&text, "\n\trejected: %s", c.Rejected)
		}
		text.WriteString("\n")
	}
	for _, problem := range set.Problems {
		if problem.Warning {
			text.WriteString("warning: ")
		}
		text.WriteString(problem.String() + "\n")
	}
	return text.String()
}

func TestLoad(t *testing.T) {
	paths := []string{"testdata/folder", "testdata/none.yaml", "testdata/folder/nested", "testdata/broken"}
	for _, pattern := range []string{"testdata/good/*", "testdata/wrong/*", "testdata/broken/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no test data: %v", err)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		name := strings.ReplaceAll(strings.TrimPrefix(path, "testdata/"), "/", "-")
		t.Run(name, func(t *testing.T) {
			got := describe(file.New(file.Options{Name: "local", Path: path}).Load())
			golden := filepath.Join("testdata/golden", name)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
			if broken := strings.HasPrefix(path, "testdata/broken"); broken != strings.HasPrefix(got, "error:") && !strings.Contains(path, "none") && !strings.Contains(path, "nested") {
				t.Errorf("read as a whole: %v", !broken)
			}
		})
	}
}

func pack(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	packed, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func save(t *testing.T, path string, m proto.Message) {
	t.Helper()
	data, err := proto.Marshal(m)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func static(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, LoadAssignment: &endpointv3.ClusterLoadAssignment{ClusterName: name}}
}

func TestBinaryResponse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pb")
	unknown := &endpointv3.ClusterLoadAssignment{ClusterName: "future"}
	extra := protowire.AppendString(protowire.AppendTag(nil, 9999, protowire.BytesType), "new")
	unknown.ProtoReflect().SetUnknown(extra)
	broken := pack(t, static("broken"))
	broken.Value = append(broken.Value, 0x0f)
	invalid := static("invalid")
	invalid.HealthChecks = append(invalid.HealthChecks, nil)
	invalid.LoadAssignment.ClusterName = ""
	save(t, path, &discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{
		pack(t, static("web")), pack(t, unknown), broken, pack(t, invalid), pack(t, &discoveryv3.DiscoveryResponse{VersionInfo: "odd"}),
		pack(t, &discoveryv3.Resource{Name: "other", Resource: pack(t, static("wrapped"))}), pack(t, &discoveryv3.Resource{Name: "hollow"}),
	}})
	set, err := file.New(file.Options{Name: "local", Path: path}).Load()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]*source.Cluster)
	for _, c := range set.Clusters {
		names[c.Name] = c
	}
	if len(names) != 5 || names["wrapped"].Config == nil || names["web"].Rejected != "" || names["web"].Config == nil {
		t.Errorf("got %v", names)
	}
	if string(names["future"].Assignment.Message().ProtoReflect().GetUnknown()) != string(extra) {
		t.Error("an unknown field was lost")
	}
	if names["broken"].Rejected == "" || names["broken"].Config != nil {
		t.Errorf("got %v", names["broken"])
	}
	if names["invalid"].Config == nil || !strings.Contains(names["invalid"].Rejected, "load_assignment.cluster_name") {
		t.Errorf("got %v", names["invalid"])
	}
	got := describe(&source.Set{Problems: set.Problems}, nil)
	for _, want := range []string{"broken: resources[2]: cannot be decoded", "invalid: resources[3].load_assignment.cluster_name", "resources[4]: is of type", "resources[6].resource: needs \"@type\""} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

func TestBinaryBootstrap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pb")
	save(t, path, &bootstrapv3.Bootstrap{StaticResources: &bootstrapv3.Bootstrap_StaticResources{
		Clusters: []*clusterv3.Cluster{static("a"), static("b")},
	}})
	set, err := file.New(file.Options{Path: path}).Load()
	if got := describe(set, err); got != "a config checks=0 endpoints=0\nb config checks=0 endpoints=0\n" {
		t.Error(got)
	}
}

func TestFolderWithALinkToNowhere(t *testing.T) {
	folder := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(folder, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	examined, _ := file.Examine(file.Options{Path: folder})
	if problems := examined.Problems; len(problems) != 1 || problems[0].Message != "cannot be read: no such file or directory" {
		t.Errorf("got %v", problems)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustLoad(t *testing.T, s *file.Source) map[string]*source.Cluster {
	t.Helper()
	set, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	clusters := make(map[string]*source.Cluster)
	for _, c := range set.Clusters {
		clusters[c.Name] = c
	}
	return clusters
}

func TestUnchangedClustersKeepTheirPointers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	s := file.New(file.Options{Path: path})
	write(t, path, "static_resources: {clusters: [{name: a}, {name: b}]}")
	before := mustLoad(t, s)
	write(t, path, "static_resources:\n  clusters:\n  - {name: b, lb_policy: RANDOM}\n  - {name: c}\n  - {name: a, lb_policy: ROUND_ROBIN}\n")
	after := mustLoad(t, s)
	if len(after) != 3 || after["a"] != before["a"] || after["b"] == before["b"] {
		t.Errorf("got %v after %v", after, before)
	}
}

func TestLastValidContentStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	const (
		eds     = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: eds, type: EDS}`
		members = `{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: eds}`
		other   = `{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: lone}`
	)
	s := file.New(file.Options{Path: path})
	write(t, path, "resources: ["+eds+", "+members+", "+other+"]")
	good := mustLoad(t, s)
	wrong := "resources: [" + strings.ReplaceAll(eds+", "+members+", "+other, "}", ", x: 1}") + ", " + sound + "]"
	write(t, path, wrong)
	bad := mustLoad(t, s)
	for name, c := range good {
		b := bad[name]
		if b == nil || b.Rejected == "" || b.Config != c.Config || b.Assignment != c.Assignment || c.Assignment == nil {
			t.Errorf("%s: got %v, was %v", name, b, c)
		}
	}
	write(t, path, strings.Replace(wrong, ", x: 1", "", 1))
	half := mustLoad(t, s)
	if half["eds"].Rejected == "" || half["eds"].Assignment != good["eds"].Assignment || half["lone"] != bad["lone"] {
		t.Errorf("got %v", half)
	}
	write(t, path, "resources: [")
	if _, err := s.Load(); err == nil {
		t.Error("a broken file was read")
	}
	write(t, path, "resources: ["+eds+", "+members+", "+other+"]")
	if again := mustLoad(t, s); again["eds"].Rejected != "" || again["lone"].Rejected != "" {
		t.Errorf("got %v", again)
	}
}

func TestExample(t *testing.T) {
	set, err := file.New(file.Options{Path: "../../examples/clusters.yaml"}).Load()
	if err != nil || len(set.Problems) > 0 || len(set.Clusters) < 3 {
		t.Error(describe(set, err))
	}
}
