package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"hdsd/source"
	"hdsd/source/file"
)

// drawResource writes one resource with a name out of few, good or not.
func drawResource(t *rapid.T) string {
	const types = "type.googleapis.com/envoy.config."
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
	more := rapid.SampledFrom([]string{"", "", "", ", unknown: 1"}).Draw(t, "more")
	switch rapid.SampledFrom([]string{"static", "eds", "eds", "assignment", "assignment", "invalid"}).Draw(t, "kind") {
	case "static":
		return fmt.Sprintf(`{"@type": %scluster.v3.Cluster, name: %s, load_assignment: {cluster_name: x}%s}`, types, name, more)
	case "eds":
		service := rapid.SampledFrom([]string{"", "a", "s"}).Draw(t, "service")
		return fmt.Sprintf(`{"@type": %scluster.v3.Cluster, name: %s, type: EDS, eds_cluster_config: {service_name: '%s'}%s}`, types, name, service, more)
	case "invalid":
		return fmt.Sprintf(`{"@type": %scluster.v3.Cluster, name: %s, health_checks: [{}]}`, types, name)
	default:
		service := rapid.SampledFrom([]string{"a", "b", "s"}).Draw(t, "service")
		priority := rapid.IntRange(0, 1).Draw(t, "priority")
		return fmt.Sprintf(`{"@type": %sendpoint.v3.ClusterLoadAssignment, cluster_name: %s, endpoints: [{priority: %d}]%s}`, types, service, priority, more)
	}
}

// sound is in each file, since one that has nothing good is no good as a whole.
const sound = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: sound}`

// loaded returns what came of resources spread over a folder's files.
func loaded(t *rapid.T, resources []string, files int) []*source.Cluster {
	folder, err := os.MkdirTemp("", "order")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	spread := make([][]string, files)
	for i, each := range resources {
		spread[i%files] = append(spread[i%files], each)
	}
	for i, each := range spread {
		name := filepath.Join(folder, fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(name, []byte("resources: ["+strings.Join(append(each, sound), ", ")+"]"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := file.New(file.Options{Path: folder}).Load()
	if err != nil {
		t.Fatal(err)
	}
	return set.Clusters
}

// TestAnEmptyListIsNotNone: a cluster with an empty load_assignment is not the same as one
// without, whichever comes first.
func TestAnEmptyListIsNotNone(t *testing.T) {
	const without, with = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a}`,
		`{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a, load_assignment: {}}`
	for _, order := range [][]string{{without, with}, {with, without}} {
		path := filepath.Join(t.TempDir(), "clusters.yaml")
		if err := os.WriteFile(path, []byte("resources: ["+strings.Join(append(order, sound), ", ")+"]"), 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := file.New(file.Options{Path: path}).Load()
		if err != nil {
			t.Fatal(err)
		}
		if c := set.Clusters[0]; c.Name != "a" || !strings.Contains(c.Rejected, "2 different ones of this name") {
			t.Errorf("of %v, %s is rejected because %q", order, c.Name, c.Rejected)
		}
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		resources := make([]string, rapid.IntRange(0, 7).Draw(t, "resources"))
		for i := range resources {
			resources[i] = drawResource(t)
		}
		one := loaded(t, resources, 1)
		other := loaded(t, rapid.Permutation(resources).Draw(t, "order"), rapid.IntRange(1, 3).Draw(t, "files"))
		if len(one) != len(other) {
			t.Fatalf("got %v and %v", one, other)
		}
		for i, a := range one {
			b := other[i]
			if a.Name != b.Name || a.ServiceName != b.ServiceName || (a.Rejected == "") != (b.Rejected == "") ||
				!proto.Equal(a.Config, b.Config) || !a.Assignment.Equal(b.Assignment) {
				t.Errorf("got %v and %v", a, b)
			}
		}
	})
}

// Whatever the file, loading does not panic; what it gives is by name, and the
// same when loaded again.
func FuzzLoad(f *testing.F) {
	found, _ := filepath.Glob("testdata/*/*.*")
	for _, path := range found {
		data, err := os.ReadFile(path)
		for kind, ending := range []string{".yaml", ".json", ".pb"} {
			if err == nil && strings.HasSuffix(path, ending) && !strings.Contains(path, "golden") {
				f.Add(kind, data)
			}
		}
	}
	bootstrap, err := proto.Marshal(&clusterv3.Cluster{Name: "a"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(2, append([]byte{0x12, byte(len(bootstrap) + 2), 0x12, byte(len(bootstrap))}, bootstrap...))
	f.Fuzz(func(t *testing.T, kind int, data []byte) {
		path := filepath.Join(t.TempDir(), "a"+[]string{".yaml", ".json", ".pb"}[uint(kind)%3])
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s := file.New(file.Options{Path: path})
		set, err := s.Load()
		if err != nil {
			if err.Error() == "" {
				t.Error("refused without a word")
			}
			return
		}
		again, err := s.Load()
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range set.Clusters {
			if again.Clusters[i] != c {
				t.Errorf("%s is another when loaded again", c.Name)
			}
			if c.Name == "" || i > 0 && set.Clusters[i-1].Name >= c.Name || c.ServiceName == "" {
				t.Errorf("got %v", c)
			}
			if c.Config == nil && c.Assignment == nil && c.Rejected == "" {
				t.Errorf("%s is nothing", c.Name)
			}
		}
	})
}
