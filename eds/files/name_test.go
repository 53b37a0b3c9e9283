package files

import (
	"bytes"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"
)

func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"web":               "web.pb",
		"a/b":               "a%2Fb.pb",
		"..":                "%2E..pb",
		".hidden":           "%2Ehidden.pb",
		"":                  ".pb",
		"outbound|80||a.b":  "outbound%7C80%7C%7Ca.b.pb",
		"xdstp://x/y?a=b&c": "xdstp:%2F%2Fx%2Fy%3Fa=b&c.pb",
		"a%2Fb":             "a%252Fb.pb",
	} {
		if got := Name(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	if a, b := Name(strings.Repeat("x", 500)+"a"), Name(strings.Repeat("x", 500)+"b"); a == b || len(a) > 210 {
		t.Errorf("long names: %s, %s", a, b)
	}
}

// TestNamesDiffer: no two assignments share a file, and each file is in the
// folder and can be seen.
func TestNamesDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		any := rapid.OneOf(rapid.String(), rapid.StringMatching(`[./%a-f0-9]{0,10}`), rapid.StringN(190, 300, 600))
		a, b := any.Draw(t, "a"), any.Draw(t, "b")
		if name := Name(a); len(name) > 210 || strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, ".") && a != "" || a != b && name == Name(b) {
			t.Errorf("%q: %q; %q: %q", a, name, b, Name(b))
		}
	})
}

// FuzzDecode: any content of a file is read without harm, and written content is
// understood.
func FuzzDecode(f *testing.F) {
	value, err := anypb.New(&endpointv3.ClusterLoadAssignment{ClusterName: "web", Policy: &endpointv3.ClusterLoadAssignment_Policy{}})
	if err != nil {
		f.Fatal(err)
	}
	whole, err := encode("hdsd-1", &discoveryv3.Resource{Name: "web", Version: "7", Resource: value})
	if err != nil {
		f.Fatal(err)
	}
	if name, version, err := decode("hdsd-1", whole); name != "web" || version != "7" || err != nil {
		f.Errorf("%q, %q, %v", name, version, err)
	}
	if _, _, err := decode("hdsd-2", whole); err == nil {
		f.Error("another coordinator's file is taken for ours")
	}
	f.Add(whole)
	f.Add([]byte("resources: []"))
	f.Fuzz(func(t *testing.T, content []byte) {
		name, version, err := decode("hdsd-1", content)
		if err == nil && !bytes.Contains(content, []byte(name)) || err == nil && !bytes.Contains(content, []byte(version)) {
			t.Errorf("%q: %q, %q", content, name, version)
		}
	})
}
