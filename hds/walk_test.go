package hds_test

import (
	"encoding/hex"
	"testing"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/hds"
)

func encode(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestExpectedBytesAreEnvoys(t *testing.T) {
	text := func(s string) string { return hex.EncodeToString([]byte(s)) }
	// Put together by hand: Endpoint{1: Address{1: SocketAddress{2: text, 3: port}}}
	// and Endpoint{1: Address{2: Pipe{1: path}}}.
	want := []string{
		"0a10" + "0a0e" + "1209" + text("127.0.0.1") + "18e144",
		"0a11" + "0a0f" + "120b" + text("2001:db8::1") + "1850",
		"0a11" + "120f" + "0a0d" + text("/run/web.sock"),
	}
	spec := assignment(checked{1, "web/a/127.0.0.1:8801"}, checked{2, "web/a/[2001:DB8::0:1]:80"}, checked{3, "web/a//run/web.sock"})
	for i, got := range hds.Expected(spec) {
		if hex.EncodeToString(got) != want[i] {
			t.Errorf("%d: expected %x, Envoy writes %s", i, got, want[i])
		}
	}
}

func TestWalkReadsExactlyWhatDecodeReads(t *testing.T) {
	const web3 = "web/c/10.0.0.3:80"
	spec := assignment(checked{9, db1}, checked{1, web1}, checked{2, web2}, checked{3, web3})
	ordinary := func() *healthv3.EndpointHealthResponse {
		return report(said{db1, up, 0}, said{web1, down, 503}, said{web2, timeout, 0}, said{web3, up, 0}).GetEndpointHealthResponse()
	}
	web := func(r *healthv3.EndpointHealthResponse) *healthv3.LocalityEndpointsHealth {
		return r.ClusterEndpointsHealth[1].LocalityEndpointsHealth[0]
	}
	details := func(fields map[string]any) *structpb.Struct {
		s, err := structpb.NewStruct(fields)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	tests := map[string]struct {
		change func(*healthv3.EndpointHealthResponse)
		fast   bool
		merged bool // in order all the same
	}{
		"as Envoy writes it":  {change: func(*healthv3.EndpointHealthResponse) {}, fast: true},
		"without a flat list": {change: func(r *healthv3.EndpointHealthResponse) { r.EndpointsHealth = nil }, fast: true},
		"flat only":           {change: func(r *healthv3.EndpointHealthResponse) { r.ClusterEndpointsHealth = nil }, fast: true},
		"with an emptied cluster": {change: func(r *healthv3.EndpointHealthResponse) {
			r.ClusterEndpointsHealth = append(r.ClusterEndpointsHealth, &healthv3.ClusterEndpointsHealth{ClusterName: "gone"})
		}, fast: true},
		"with a host name": {change: func(r *healthv3.EndpointHealthResponse) { web(r).EndpointsHealth[0].Endpoint.Hostname = "web" }, fast: true},
		"without a status": {change: func(r *healthv3.EndpointHealthResponse) { web(r).EndpointsHealth[0].HealthStatus = 0 }, fast: true},
		"an odd status":    {change: func(r *healthv3.EndpointHealthResponse) { web(r).EndpointsHealth[0].HealthStatus = -1 }, fast: true},
		"more details": {change: func(r *healthv3.EndpointHealthResponse) {
			web(r).EndpointsHealth[0].HealthMetadata = details(map[string]any{"http_status_code": 500, "more": []any{1, "x"}})
		}, fast: true},
		"other details": {change: func(r *healthv3.EndpointHealthResponse) {
			web(r).EndpointsHealth[0].HealthMetadata = details(map[string]any{"http_status_code": "500"})
		}, fast: true},
		"an impossible code": {change: func(r *healthv3.EndpointHealthResponse) {
			web(r).EndpointsHealth[0].HealthMetadata = details(map[string]any{"http_status_code": 1e300})
		}, fast: true},
		"details twice, which adds them up": {change: func(r *healthv3.EndpointHealthResponse) {
			web(r).EndpointsHealth[0].ProtoReflect().SetUnknown([]byte{0x1a, 0})
		}, merged: true},
		"another address": {change: func(r *healthv3.EndpointHealthResponse) {
			web(r).EndpointsHealth[1].Endpoint = endpointAt("10.0.0.3:80")
		}},
		"another locality": {change: func(r *healthv3.EndpointHealthResponse) { web(r).Locality.Zone = "z" }},
		"another cluster":  {change: func(r *healthv3.EndpointHealthResponse) { r.ClusterEndpointsHealth[1].ClusterName = "other" }},
		"one less":         {change: func(r *healthv3.EndpointHealthResponse) { web(r).EndpointsHealth = web(r).EndpointsHealth[:1] }},
		"one more": {change: func(r *healthv3.EndpointHealthResponse) {
			web(r).EndpointsHealth = append(web(r).EndpointsHealth, web(r).EndpointsHealth[0])
		}},
		"one in its neighbour's locality": {change: func(r *healthv3.EndpointHealthResponse) {
			a, c := web(r), r.ClusterEndpointsHealth[1].LocalityEndpointsHealth[1]
			c.EndpointsHealth = append(a.EndpointsHealth[1:2:2], c.EndpointsHealth...)
			a.EndpointsHealth = a.EndpointsHealth[:1]
		}},
		"another order": {change: func(r *healthv3.EndpointHealthResponse) {
			r.ClusterEndpointsHealth[0], r.ClusterEndpointsHealth[1] = r.ClusterEndpointsHealth[1], r.ClusterEndpointsHealth[0]
		}},
		"nothing": {change: func(r *healthv3.EndpointHealthResponse) { r.ClusterEndpointsHealth, r.EndpointsHealth = nil, nil }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := ordinary()
			test.change(r)
			message := encode(t, reportMessage(r))
			fast, ok := hds.Walk(message, spec)
			if ok != test.fast {
				t.Errorf("walked: %v, want %v", ok, test.fast)
			}
			slow, follows, err := hds.Decode(message, spec)
			if err != nil || ok && (!follows || fast != slow) {
				t.Errorf("walked %q, decoded %q (in order: %v), %v", fast, slow, follows, err)
			}
			if follows != (test.fast || test.merged) {
				t.Errorf("decoded %q, in order: %v", slow, follows)
			}
			for cut := range message { // whatever is cut short
				agree(t, message[:cut], spec)
			}
		})
	}
}

// TestWalkLeavesANameThatIsNoTextToDecode: nothing else would refuse it, since
// an empty specifier expects no endpoints.
func TestWalkLeavesANameThatIsNoTextToDecode(t *testing.T) {
	name := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte("\xff\xfe"))
	cluster := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), name)
	message := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), cluster)
	if text, ok := hds.Walk(message, assignment()); ok {
		t.Errorf("walked %q", text)
	}
	if _, _, err := hds.Decode(message, assignment()); err == nil {
		t.Error("decoded")
	}
}
