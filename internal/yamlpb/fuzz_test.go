package yamlpb_test

import (
	"os"
	"path/filepath"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/yamlpb"
)

func seeds(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.[yj]*")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			f.Add(data)
		}
	}
	f.Add([]byte(`{"name":"a","type":"EDS","connectTimeout":"1.5s","healthChecks":[{"interval":"1s","reuseConnection":true}]}`))
	f.Add([]byte(`{"metadata":{"filterMetadata":{"a":{"b":[1,null,"x",{"y":1e3}]}}},"perConnectionBufferLimitBytes":"5"}`))
	f.Add([]byte(`{"name":"a","load_assignment":{"cluster_name":"a","endpoints":[{"lb_endpoints":[
{"endpoint":{"address":{"socket_address":{"address":"10.0.0.1","port_value":80}}}},
{"endpoint":{"address":{"socket_address":{"address":"::1","port_value":4294967295}}}},
{"endpoint":{"address":{"socket_address":{"port_value":80,"address":"a"}}}},{"endpoint":{"address":{"socket_address":{"address":"a","port_value":"80"}}}}]}]}}`))
	f.Add([]byte("a: &a [*a, *a]\nmetadata: {filter_metadata: {m: {x: *a}}}"))
}

// Whatever JSON this package takes, protojson takes too and means the same.
func FuzzDecodeJSON(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		got, problems := decode("a.json", data)
		if len(problems) > 0 {
			return
		}
		want := &clusterv3.Cluster{}
		if err := protojson.Unmarshal(data, want); err != nil {
			t.Fatalf("taken, but protojson says %v", err)
		}
		// NaN is not equal to itself, so compare the bytes.
		if gotBytes, wantBytes := bytesOf(t, got), bytesOf(t, want); gotBytes != wantBytes {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// Whatever hdsd takes as strict text means the same as Envoy's text where JSON
// is, and what is taken as Envoy's can be written as JSON and taken again.
func FuzzDecodeAsEnvoy(f *testing.F) {
	seeds(f)
	f.Add([]byte("type: strict_dns\nhealth_checks: {interval: {seconds: '0x5'}, reuse_connection: {value: y}}\nname: a\nname: 0x1234567890\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		asEnvoy := func(file string, data []byte) (*clusterv3.Cluster, bool) {
			message := &clusterv3.Cluster{}
			root, problems := yamlpb.ParseAsEnvoy(file, data)
			if !yamlpb.Refused(problems) {
				problems = root.Decode(message)
			}
			return message, !yamlpb.Refused(problems)
		}
		strict, problems := decode("a.json", data)
		if loose, taken := asEnvoy("a.json", data); len(problems) == 0 && (!taken || bytesOf(t, strict) != bytesOf(t, loose)) {
			t.Errorf("got %v (taken: %t), want %v", loose, taken, strict)
		}
		got, taken := asEnvoy("a.yaml", data)
		if !taken {
			return
		}
		text, err := protojson.Marshal(got)
		if err != nil {
			return
		}
		if again, taken := asEnvoy("a.json", text); !taken || bytesOf(t, got) != bytesOf(t, again) {
			t.Errorf("got %v from %s", again, text)
		}
	})
}

// No YAML makes it panic, and what is taken can be written as JSON and taken
// again.
func FuzzDecodeYAML(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		got, problems := decode("a.yaml", data)
		for _, problem := range problems {
			if problem.File != "a.yaml" || problem.Message == "" {
				t.Errorf("got %#v", problem)
			}
		}
		if len(problems) > 0 {
			return
		}
		data, err := protojson.Marshal(got)
		if err != nil {
			return // protojson is stricter about what is inside some messages
		}
		again, problems := decode("a.json", data)
		if len(problems) > 0 || bytesOf(t, got) != bytesOf(t, again) {
			t.Errorf("got %v from %s, %v", again, data, problems)
		}
	})
}

func bytesOf(t *testing.T, m proto.Message) string {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// What a strict file means, a file of hdsd's own means too. What only the latter takes
// can be written as JSON, and means the same in a strict file.
func FuzzDecodeOwn(f *testing.F) {
	seeds(f)
	f.Add([]byte(`{"connectTimeout":"30d","healthChecks":[{"interval":"1h30m","timeout":"500ms"}]}`))
	f.Add([]byte(`{"connectTimeout":"-1d","healthChecks":[{"interval":"99999999w","timeout":"-0.5s"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		own := &clusterv3.Cluster{}
		root, problems := yamlpb.ParseOwn("a.json", data)
		if len(problems) == 0 {
			problems = root.Decode(own)
		}
		strict, refused := decode("a.json", data)
		if len(refused) == 0 && (len(problems) > 0 || bytesOf(t, own) != bytesOf(t, strict)) {
			t.Errorf("got %v, %v, want %v", own, problems, strict)
		}
		if len(problems) > 0 {
			return
		}
		text, err := protojson.Marshal(own)
		if err != nil {
			return
		}
		if again, problems := decode("a.json", text); len(problems) > 0 || bytesOf(t, again) != bytesOf(t, own) {
			t.Errorf("got %v from %s, %v", again, text, problems)
		}
	})
}
