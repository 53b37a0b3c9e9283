package yamlpb_test

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/yamlpb"
	"hdsd/test/envoy"
)

// What Envoy makes of text is what hdsd makes of it. (That the table tells the
// truth of Envoy is TestWhatEnvoyMakesOfText in test/envoy.)
func TestTextAsEnvoyReadsIt(t *testing.T) {
	for _, s := range envoy.Spellings(t) {
		t.Run(s.Form+"/"+s.Name, func(t *testing.T) {
			root, problems := yamlpb.ParseAsEnvoy("a."+s.Form, envoy.Bootstrap(s))
			got := &clusterv3.Cluster{}
			if !yamlpb.Refused(problems) {
				static, _ := root.Field("static_resources")
				clusters, _ := static.Field("clusters")
				problems = append(problems, clusters.Elements()[0].Decode(got, "name")...)
			}
			refused := yamlpb.Refused(problems) || len(yamlpb.Validate(withName(got))) > 0
			switch {
			case refused == s.Hdsd:
				t.Errorf("refused: %v: %v", refused, problems)
			case s.Hdsd && !proto.Equal(got, s.Want):
				t.Errorf("got %v, want %v", got, s.Want)
			}
		})
	}
}

// TestANumberIsCalledOne in what is said of it, though Envoy sees a text there.
func TestANumberIsCalledOne(t *testing.T) {
	for text, want := range map[string]string{
		"1.5": "the number 1.5", "'1.5'": `the text "1.5"`, "!!str 1.5": `the text "1.5"`, "1.5s": `the text "1.5s"`,
	} {
		root, problems := yamlpb.ParseAsEnvoy("a.yaml", []byte("per_connection_buffer_limit_bytes: "+text))
		problems = append(problems, root.Decode(&clusterv3.Cluster{})...)
		if len(problems) != 1 || !strings.Contains(problems[0].String(), want) {
			t.Errorf("%s: %v, want %s", text, problems, want)
		}
	}
}

func withName(c *clusterv3.Cluster) *clusterv3.Cluster {
	named := proto.CloneOf(c)
	named.Name = "x"
	return named
}
