package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/source"
	"hdsd/source/file"
	"hdsd/source/sample"
)

// TestTooManyEndpointsInOneCluster refuses that cluster alone, in each format. Its last
// valid version stays.
func TestTooManyEndpointsInOneCluster(t *testing.T) {
	encoded := func(format string, messages ...proto.Message) []byte {
		response := &discoveryv3.DiscoveryResponse{}
		for _, m := range messages {
			packed, err := anypb.New(m)
			if err != nil {
				t.Fatal(err)
			}
			response.Resources = append(response.Resources, packed)
		}
		data, err := proto.Marshal(response)
		if format != ".pb" {
			data, err = protojson.Marshal(response)
		}
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	small, large := sample.Web("web", "10.0.0.1:1", "10.0.0.1:2").Message(), sample.Web("web", "10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3").Message()
	lone := sample.Web("lone", "10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3").Assignment.Message()
	other := sample.Web("other", "10.0.0.1:1").Message()
	for _, format := range []string{".pb", ".json", ".yaml"} { // JSON is YAML
		path := filepath.Join(t.TempDir(), "clusters"+format)
		s := file.New(file.Options{Name: "x", Path: path, MaxClusterEndpoints: 2})
		load := func(messages ...proto.Message) *source.Set {
			t.Helper()
			if err := os.WriteFile(path, encoded(format, messages...), 0o600); err != nil {
				t.Fatal(err)
			}
			set, err := s.Load()
			if err != nil {
				t.Fatal(err)
			}
			return set
		}
		if set := load(small, other); len(set.Problems) > 0 {
			t.Errorf("%s: two are refused: %v", format, set.Problems)
		}
		set := load(large, other, lone)
		web := set.Find("web")
		if web == nil || len(web.Assignment.Message().GetEndpoints()[0].GetLbEndpoints()) != 2 || !strings.Contains(web.Rejected, "it has 3 endpoints") || !strings.Contains(web.Rejected, "limits.max_cluster_endpoints") {
			t.Errorf("%s: %+v", format, web)
		}
		if one := set.Find("lone"); one == nil || one.Assignment != nil || !strings.Contains(one.Rejected, "it has 3 endpoints") {
			t.Errorf("%s: %+v", format, one)
		}
		if one := set.Find("other"); one == nil || one.Rejected != "" {
			t.Errorf("%s: %+v", format, one)
		}
	}
}
