package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/source/file"
)

const (
	typedCluster = `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster`
	unread       = "can be read, so nothing of it is used"
)

func TestFileOfUnreadableResources(t *testing.T) {
	for name, c := range map[string]struct {
		content  string
		readable bool
	}{
		"none at all":        {"resources: []", true},
		"no list":            {"version_info: x", true},
		"no static clusters": {"static_resources: {clusters: []}", true},
		"a good one":         {"resources: [{" + typedCluster + ", name: b}, text]", true},
		"an invalid one":     {"resources: [{" + typedCluster + ", name: b, health_checks: [{interval: 1s}]}]", true},
		"unknown fields":     {"resources: [{" + typedCluster + ", name: b, x: 1}, {" + typedCluster + ", name: c, y: 1}]", false},
		"of v2":              {`resources: [{"@type": type.googleapis.com/envoy.api.v2.Cluster, name: a}]`, false},
		"of another type":    {`resources: [{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: a}]`, false},
		"without types":      {"resources: [{name: a}, {name: b}]", false},
		"text":               {"resources: [a, b]", false},
		"nothing":            {"resources: [null]", false},
		"without names":      {"resources: [{" + typedCluster + "}, {" + typedCluster + ", type: STATIC}]", false},
		"static clusters":    {"static_resources: {clusters: [{name: b, x: 1}, {type: STATIC}]}", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.yaml")
			s := file.New(file.Options{Path: path})
			write(t, path, clusters("a", "b"))
			before := mustLoad(t, s)
			write(t, path, c.content)
			_, err := s.Load()
			if (err == nil) != c.readable || err != nil && !strings.Contains(err.Error(), unread) {
				t.Errorf("got %v", err)
			}
			if !c.readable {
				write(t, path, clusters("a"))
				if after := mustLoad(t, s); after["a"] != before["a"] {
					t.Error("what was read before has changed")
				}
			}
		})
	}
}

func TestBinaryFileOfUnreadableResources(t *testing.T) {
	broken := pack(t, static("broken"))
	broken.Value = append(broken.Value, 0x0f)
	odd := pack(t, &discoveryv3.Resource{Name: "odd"})
	bootstrap := func(c *clusterv3.Cluster) *bootstrapv3.Bootstrap {
		return &bootstrapv3.Bootstrap{StaticResources: &bootstrapv3.Bootstrap_StaticResources{Clusters: []*clusterv3.Cluster{c}}}
	}
	for name, c := range map[string]struct {
		content  proto.Message
		readable bool
	}{
		"broken and odd": {&discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{broken, odd}}, false},
		"one is good":    {&discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{broken, odd, pack(t, static("web"))}}, true},
		"without a name": {bootstrap(&clusterv3.Cluster{AltStatName: "x"}), false},
		"with a name":    {bootstrap(static("web")), true},
	} {
		path := filepath.Join(t.TempDir(), "a.pb")
		save(t, path, c.content)
		_, err := file.New(file.Options{Path: path}).Load()
		if (err == nil) != c.readable || err != nil && !strings.Contains(err.Error(), unread) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestBinaryFileOfEmptyMessages: what takes far more memory than it has bytes is not decoded.
func TestBinaryFileOfEmptyMessages(t *testing.T) {
	hollow := static("hollow")
	hollow.HealthChecks = make([]*corev3.HealthCheck, 1000)
	for i := range hollow.HealthChecks {
		hollow.HealthChecks[i] = &corev3.HealthCheck{}
	}
	path := filepath.Join(t.TempDir(), "a.pb")
	for name, content := range map[string]proto.Message{
		"a resource": &discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{pack(t, hollow)}},
		"a cluster":  &bootstrapv3.Bootstrap{StaticResources: &bootstrapv3.Bootstrap_StaticResources{Clusters: []*clusterv3.Cluster{hollow, static("web")}}},
	} {
		save(t, path, content)
		if _, err := file.New(file.Options{Path: path}).Load(); err == nil {
			t.Errorf("%s: it was read", name)
		} else if name == "a resource" && !strings.Contains(err.Error(), "nearly all of them must be empty") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestUnreadableFileInAFolder: each file of a folder has to be readable, or the
// clusters of that one would vanish.
func TestUnreadableFileInAFolder(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "good.yaml"), clusters("a"))
	bad := filepath.Join(folder, "bad.yaml")
	write(t, bad, "resources:\n- {name: b}\n- {name: c}\n")
	examined, _ := file.Examine(file.Options{Path: folder})
	if problems := examined.Problems; len(problems) != 3 || problems[0].File != bad || problems[0].Line != 0 || problems[1].Line != 2 || problems[2].Line != 3 {
		t.Errorf("got %v", problems)
	}
	if err := os.Remove(bad); err != nil {
		t.Fatal(err)
	}
	w := watch(t, file.Options{Path: folder})
	w.expect("a")
	move(t, bad, clusters("b"))
	w.expect("a b")
	move(t, bad, "resources: [{name: b}]")
	if set := w.expect("a b"); len(set.Problems) != 2 || set.Problems[0].File != bad {
		t.Errorf("got %v", set.Problems)
	}
	move(t, bad, "resources: []")
	if set := w.expect("a"); len(set.Problems) != 0 {
		t.Errorf("got %v", set.Problems)
	}
}
