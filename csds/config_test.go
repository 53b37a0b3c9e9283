package csds

import (
	"slices"
	"strings"
	"testing"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
)

// answered returns the response about clients.
func answered(t testing.TB, r *statusv3.ClientStatusRequest, clients ...Client) []*statusv3.ClientConfig {
	t.Helper()
	got, err := NewServer(Options{}, fixed(clients)).FetchClientStatus(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return got.GetConfig()
}

// oneClient returns the response about a client with these resources.
func oneClient(t testing.TB, all ...Resource) *statusv3.ClientConfig {
	t.Helper()
	return answered(t, &statusv3.ClientStatusRequest{}, Client{Resources: resources(all...)})[0]
}

func TestEveryStatusIsShown(t *testing.T) {
	for config := range statusv3.ConfigStatus_name {
		for client := range adminv3.ClientResourceStatus_name {
			r := Resource{
				TypeURL: resourcev3.ClusterType, Name: "web", Version: "7", Updated: start, Body: body(t, &clusterv3.Cluster{Name: "web"}),
				Config: statusv3.ConfigStatus(config), Client: adminv3.ClientResourceStatus(client),
			}
			c := oneClient(t, r)
			g, d := c.GetGenericXdsConfigs()[0], c.GetXdsConfig()[0].GetClusterConfig().GetDynamicActiveClusters()[0]
			if g.GetConfigStatus() != r.Config || g.GetClientStatus() != r.Client || d.GetClientStatus() != r.Client {
				t.Errorf("%s and %s become %v", r.Config, r.Client, c)
			}
			if g.GetTypeUrl() != resourcev3.ClusterType || g.GetName() != "web" || g.GetVersionInfo() != "7" || !g.GetLastUpdated().AsTime().Equal(start) || g.GetIsStaticResource() {
				t.Errorf("generic form: %v", g)
			}
			if d.GetVersionInfo() != "7" || !d.GetLastUpdated().AsTime().Equal(start) || !proto.Equal(d.GetCluster(), g.GetXdsConfig()) || d.GetCluster() == nil {
				t.Errorf("deprecated form: %v", d)
			}
		}
	}
}

// TestATypeHasTheStatusOfItsWorstResource lists resources by config_status and
// client_status.
func TestATypeHasTheStatusOfItsWorstResource(t *testing.T) {
	for of, want := range map[string]string{
		"SYNCED ACKED": "SYNCED", "NOT_SENT REQUESTED": "NOT_SENT", "STALE ACKED": "STALE", "ERROR NACKED": "ERROR",
		"SYNCED ACKED, NOT_SENT REQUESTED": "NOT_SENT",
		"STALE ACKED, NOT_SENT REQUESTED":  "STALE",
		"STALE ACKED, ERROR NACKED":        "ERROR",
		"UNKNOWN ACKED, SYNCED ACKED":      "SYNCED",
		// A resource that does not exist is synced once the client knows.
		"NOT_SENT DOES_NOT_EXIST":              "SYNCED",
		"NOT_SENT DOES_NOT_EXIST, STALE ACKED": "STALE",
		"STALE DOES_NOT_EXIST":                 "STALE",
		// hdsd itself.
		"UNKNOWN UNKNOWN":                                       "UNKNOWN",
		"UNKNOWN ACKED":                                         "CLIENT_ACKED",
		"UNKNOWN DOES_NOT_EXIST":                                "CLIENT_ACKED",
		"UNKNOWN ACKED, UNKNOWN REQUESTED":                      "CLIENT_REQUESTED",
		"UNKNOWN ACKED, UNKNOWN TIMEOUT":                        "CLIENT_REQUESTED",
		"UNKNOWN REQUESTED, UNKNOWN RECEIVED_ERROR":             "CLIENT_RECEIVED_ERROR",
		"UNKNOWN RECEIVED_ERROR, UNKNOWN NACKED, UNKNOWN ACKED": "CLIENT_NACKED",
	} {
		var all []Resource
		for r := range strings.SplitSeq(of, ", ") {
			config, client, _ := strings.Cut(r, " ")
			all = append(all, Resource{
				TypeURL: resourcev3.EndpointType, Config: statusv3.ConfigStatus(statusv3.ConfigStatus_value[config]),
				Client: adminv3.ClientResourceStatus(adminv3.ClientResourceStatus_value[client]),
			})
		}
		x := oneClient(t, all...).GetXdsConfig()[0]
		got := x.GetStatus().String()
		if own := x.GetClientStatus(); own != statusv3.ClientConfigStatus_CLIENT_UNKNOWN { //nolint:staticcheck // what older tools read
			got = own.String()
			if x.GetStatus() != statusv3.ConfigStatus_UNKNOWN {
				t.Errorf("%s: both of %v", of, x)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", of, got, want)
		}
	}
}

// TestErrorStateOfARefusedResource: what was refused is in the error state. The resource
// itself is what the source says: what a server last sent, or what hdsd last accepted.
func TestErrorStateOfARefusedResource(t *testing.T) {
	old, bad := body(t, &clusterv3.Cluster{Name: "old"}), body(t, &clusterv3.Cluster{Name: "bad"})
	for name, test := range map[string]struct {
		version     string
		has, failed Body
		shown       string
	}{
		"sent last":          {"2", bad, nil, "bad"},
		"accepted before":    {"1", old, bad, "old"},
		"nothing was before": {"", nil, bad, ""},
	} {
		g := oneClient(t, Resource{
			TypeURL: resourcev3.ClusterType, Version: test.version, Body: test.has, Client: adminv3.ClientResourceStatus_NACKED,
			Error: &Error{Details: "no", Version: "2", Time: start, Body: test.failed},
		}).GetGenericXdsConfigs()[0]
		var shown, failed clusterv3.Cluster
		if g.GetXdsConfig() != nil {
			if err := g.GetXdsConfig().UnmarshalTo(&shown); err != nil {
				t.Fatal(err)
			}
		}
		e := g.GetErrorState()
		if err := e.GetFailedConfiguration().UnmarshalTo(&failed); err != nil {
			t.Fatalf("%s: %v in %v", name, err, g)
		}
		if shown.GetName() != test.shown || failed.GetName() != "bad" || g.GetVersionInfo() != test.version {
			t.Errorf("%s: shown %q at %q, failed %q", name, shown.GetName(), g.GetVersionInfo(), failed.GetName())
		}
		if e.GetDetails() != "no" || e.GetVersionInfo() != "2" || !e.GetLastUpdateAttempt().AsTime().Equal(start) {
			t.Errorf("%s: error state %v", name, e)
		}
	}
}

func TestTheRequestsOwnNodeSelectsNothing(t *testing.T) {
	for _, node := range []*corev3.Node{nil, {Id: "quiet"}, {Id: "nobody"}} {
		if got := answered(t, &statusv3.ClientStatusRequest{Node: node}, fleet(t)...); len(got) != len(fleet(t)) {
			t.Errorf("asked by %v: %d clients", node, len(got))
		}
	}
}

// TestANodeIsShownWhole, except for its extensions.
func TestANodeIsShownWhole(t *testing.T) {
	node := &corev3.Node{}
	m := node.ProtoReflect()
	for i := range m.Descriptor().Fields().Len() {
		switch f := m.Descriptor().Fields().Get(i); {
		case f.IsMap():
			all := m.Mutable(f).Map()
			all.Set(protoreflect.ValueOfString("x").MapKey(), all.NewValue())
		case f.IsList() && f.Message() != nil:
			m.Mutable(f).List().AppendMutable()
		case f.IsList():
			m.Mutable(f).List().Append(protoreflect.ValueOfString("x"))
		case f.Message() != nil:
			m.Mutable(f)
		default:
			m.Set(f, protoreflect.ValueOfString("x"))
		}
	}
	node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{"vpc": structpb.NewStringValue("blue")}}
	for _, version := range []*corev3.Node{
		{UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: "1"}},
		{UserAgentVersionType: &corev3.Node_UserAgentBuildVersion{UserAgentBuildVersion: &corev3.BuildVersion{}}},
	} {
		given := proto.CloneOf(node)
		given.UserAgentVersionType = version.UserAgentVersionType
		got := answered(t, &statusv3.ClientStatusRequest{}, Client{Node: given})[0].GetNode()
		want := proto.CloneOf(given)
		want.Extensions = nil
		if !proto.Equal(got, want) || len(given.GetExtensions()) == 0 {
			t.Errorf("shown %v\nof    %v", got, given)
		}
	}
}

func TestUnknownFieldsOfMatchersAreRefused(t *testing.T) {
	full := `{"node_id":{"safe_regex":{"google_re2":{},"regex":"a"}},"node_metadatas":[{"path":[{"key":"a"}],"value":{"or_match":{"value_matchers":[
		{"null_match":{}},{"list_match":{"one_of":{"double_match":{"range":{"end":3}}}}}]}}}]}`
	if _, err := compile(request(t, full).GetNodeMatchers()); err != nil {
		t.Fatal(err)
	}
	messages := func(m protoreflect.Message) (all []protoreflect.Message) {
		_ = protorange.Range(m, func(v protopath.Values) error {
			if inner, ok := v.Index(-1).Value.Interface().(protoreflect.Message); ok {
				all = append(all, inner)
			}
			return nil
		})
		return all
	}
	all := messages(request(t, full).GetNodeMatchers()[0].ProtoReflect())
	var names []string
	for i := range all {
		r := request(t, full)
		m := messages(r.GetNodeMatchers()[0].ProtoReflect())[i]
		m.SetUnknown(protoreflect.RawFields{0x78, 0x01}) // field 15
		_, err := compile(r.GetNodeMatchers())
		name := string(m.Descriptor().FullName())
		if err == nil || !strings.Contains(err.Error(), "node_matchers[0]: "+name+" has a field 15") {
			t.Errorf("in a %s: %v", name, err)
		}
		names = append(names, name)
	}
	if slices.Sort(names); len(slices.Compact(names)) < 10 {
		t.Errorf("only %v", slices.Compact(names))
	}
}
