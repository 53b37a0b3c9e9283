package query

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/csds"
	"hdsd/eds"
	"hdsd/envoy/specifier"
	"hdsd/hds"
	"hdsd/health"
	"hdsd/publish"
	"hdsd/source"
)

// watched is a server of data planes, one of checkers, and the status of both.
type watched struct {
	*testing.T
	eds  *eds.Server
	hds  *hds.Server
	conn *grpc.ClientConn

	lagging map[string]bool // checkers
}

// deaf is a sink that needs no votes.
type deaf struct{}

func (deaf) Connected(health.Checker)              {}
func (deaf) Disconnected(string)                   {}
func (deaf) Ended(string)                          {}
func (deaf) Reported(string, []health.Vote)        {}
func (deaf) Accepted(string, *specifier.Specifier) {}
func (deaf) Silent(string, bool)                   {}

// watching runs a test in virtual time.
func watching(t *testing.T, run func(t *testing.T, w *watched)) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{T: t, eds: eds.NewServer(eds.Options{Identifier: "hdsd"}), hds: hds.NewServer(hds.Options{}, deaf{})}
		status := csds.NewServer(csds.Options{}, subscriberStatus{w.eds}, checkerStatus{w.hds, func() map[string]bool { return w.lagging }})
		transport, listener := grpc.NewServer(hds.ServerOptions(hds.Options{})...), bufconn.Listen(1<<20)
		w.eds.Register(transport)
		w.hds.Register(transport)
		status.Register(transport)
		go func() { _ = transport.Serve(listener) }()
		var err error
		w.conn, err = grpc.NewClient("passthrough:test",
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			w.conn.Close()
			w.hds.Close()
			w.eds.Close()
			status.Close()
			transport.Stop()
		}()
		w.eds.Update(publish.Update{
			Clusters:    []publish.Cluster{{Message: &clusterv3.Cluster{Name: "web"}}},
			Assignments: []publish.Assignment{{Name: "web"}},
		})
		run(t, w)
	})
}

type dataPlane = grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]

// subscribe opens a data plane's stream and asks for clusters.
func (w *watched) subscribe(ctx context.Context, id string) dataPlane {
	w.Helper()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(w.conn).DeltaAggregatedResources(ctx)
	if err != nil {
		w.Fatal(err)
	}
	w.ask(stream, &discoveryv3.DeltaDiscoveryRequest{
		Node: &corev3.Node{Id: id, Extensions: []*corev3.Extension{{Name: "x"}}}, TypeUrl: resourcev3.ClusterType,
	})
	return stream
}

func (w *watched) ask(stream dataPlane, m *discoveryv3.DeltaDiscoveryRequest) {
	w.Helper()
	if err := stream.Send(m); err != nil {
		w.Fatal(err)
	}
}

// answer takes the next response and accepts or refuses it.
func (w *watched) answer(stream dataPlane, refusal string) {
	w.Helper()
	r, err := stream.Recv()
	if err != nil {
		w.Fatal(err)
	}
	m := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}
	if refusal != "" {
		m.ErrorDetail = &statuspb.Status{Code: 3, Message: refusal}
	}
	w.ask(stream, m)
	synctest.Wait()
}

type checkerStream = grpc.BidiStreamingClient[healthv3.HealthCheckRequestOrEndpointHealthResponse, healthv3.HealthCheckSpecifier]

func (w *watched) check(ctx context.Context, id string) checkerStream {
	w.Helper()
	stream, err := healthv3.NewHealthDiscoveryServiceClient(w.conn).StreamHealthCheck(ctx)
	if err != nil {
		w.Fatal(err)
	}
	if err := stream.Send(&healthv3.HealthCheckRequestOrEndpointHealthResponse{
		RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_HealthCheckRequest{
			HealthCheckRequest: &healthv3.HealthCheckRequest{Node: &corev3.Node{Id: id}, Capability: &healthv3.Capability{}},
		},
	}); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
	return stream
}

var checkedEndpoint = &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
	SocketAddress: &corev3.SocketAddress{Address: "10.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80}},
}}}

func oneEndpoint() *specifier.Specifier {
	return &specifier.Specifier{
		Interval: time.Second,
		Clusters: []specifier.Part{{Head: &healthv3.ClusterHealthCheck{ClusterName: "web"}, Localities: []specifier.Group{{Entries: 1}}}},
		Order:    []health.EndpointID{7}, Addresses: []string{"10.0.0.1:80"},
	}
}

// report says what follows oneEndpoint.
func (w *watched) report(stream checkerStream) {
	w.Helper()
	if err := stream.Send(&healthv3.HealthCheckRequestOrEndpointHealthResponse{
		RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_EndpointHealthResponse{
			EndpointHealthResponse: &healthv3.EndpointHealthResponse{
				ClusterEndpointsHealth: []*healthv3.ClusterEndpointsHealth{{
					ClusterName: "web",
					LocalityEndpointsHealth: []*healthv3.LocalityEndpointsHealth{{
						EndpointsHealth: []*healthv3.EndpointHealth{{Endpoint: checkedEndpoint, HealthStatus: corev3.HealthStatus_HEALTHY}},
					}},
				}},
			},
		},
	}); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

func (w *watched) fetch(matchers ...*matcherv3.NodeMatcher) *statusv3.ClientStatusResponse {
	w.Helper()
	synctest.Wait()
	r, err := statusv3.NewClientStatusDiscoveryServiceClient(w.conn).
		FetchClientStatus(w.Context(), &statusv3.ClientStatusRequest{NodeMatchers: matchers})
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// lines gives a response's resources, one a line.
func lines(r *statusv3.ClientStatusResponse) string {
	var all []string
	for _, c := range r.GetConfig() {
		all = append(all, c.GetNode().GetId()+" "+c.GetClientScope())
		for _, g := range c.GetGenericXdsConfigs() {
			line := fmt.Sprintf("  %s %s %s %s", kind(g.GetTypeUrl()), g.GetName(), g.GetConfigStatus(), g.GetClientStatus())
			if g.GetXdsConfig() != nil {
				line += " body"
			}
			if e := g.GetErrorState(); e != nil {
				line += " refused: " + e.GetDetails()
				switch {
				case e.GetFailedConfiguration() == nil:
				case e.GetVersionInfo() == g.GetVersionInfo():
					line += " (this)"
				default:
					line += " (before)"
				}
			}
			all = append(all, line)
		}
		for _, x := range c.GetXdsConfig() {
			all = append(all, fmt.Sprintf("  %d clusters, %d assignments: %s", len(x.GetClusterConfig().GetDynamicActiveClusters()),
				len(x.GetEndpointConfig().GetDynamicEndpointConfigs()), x.GetStatus()))
		}
	}
	return strings.Join(all, "\n")
}

// kind is the last part of a type's name.
func kind(typeURL string) string { return typeURL[strings.LastIndex(typeURL, ".")+1:] }

func (w *watched) wants(what, want string) {
	w.Helper()
	if got := lines(w.fetch()); got != want {
		w.Errorf("%s:\n%s\nwant\n%s", what, got, want)
	}
}

func TestClientStatusFollowsRealClients(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		w.wants("nobody", "")
		ctx, leave := context.WithCancel(t.Context())
		dp := w.subscribe(ctx, "dp-1")
		w.ask(dp, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: []string{"web", "gone"}})
		w.wants("sent", `dp-1 dp-1/ADS
  Cluster web STALE REQUESTED body
  ClusterLoadAssignment gone STALE DOES_NOT_EXIST
  ClusterLoadAssignment web STALE REQUESTED body
  1 clusters, 0 assignments: STALE
  0 clusters, 1 assignments: STALE`)
		w.answer(dp, "")
		w.answer(dp, "bad weight")

		stream := w.check(t.Context(), "checker-1")
		w.wants("refused, and a checker without a specifier", `dp-1 dp-1/ADS
  Cluster web SYNCED ACKED body
  ClusterLoadAssignment gone ERROR NACKED refused: bad weight
  ClusterLoadAssignment web ERROR NACKED body refused: bad weight (this)
  1 clusters, 0 assignments: SYNCED
  0 clusters, 1 assignments: ERROR
checker-1 checker-1/HDS
  HealthCheckSpecifier checker-1 NOT_SENT REQUESTED`)

		w.hds.Assign("checker-1", oneEndpoint())
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		leave()
		w.wants("a checker that has not reported, the data plane gone", `checker-1 checker-1/HDS
  HealthCheckSpecifier checker-1 STALE REQUESTED body`)
		w.report(stream)
		w.wants("reported", `checker-1 checker-1/HDS
  HealthCheckSpecifier checker-1 SYNCED ACKED body`)
	})
}

// TestClientStatusIsTheClientsView has the client status be what the client
// answered last, whatever is on its way to it, and the configuration status what
// became of what it was sent last.
func TestClientStatusIsTheClientsView(t *testing.T) {
	for name, test := range map[string]struct{ steps, want string }{
		"never answered":                 {"subscribe", "STALE REQUESTED body"},
		"accepted":                       {"subscribe ack", "SYNCED ACKED body"},
		"accepted, outstanding":          {"subscribe ack change", "STALE ACKED body"},
		"accepted, outstanding, changed": {"subscribe ack change change", "STALE ACKED body"},
		"refused":                        {"subscribe nack", "ERROR NACKED body refused: no (this)"},
		"refused, outstanding":           {"subscribe nack change", "STALE NACKED body refused: no (before)"},
		"refused, accepted":              {"subscribe nack change ack", "SYNCED ACKED body"},
		"refused, accepted, outstanding": {"subscribe nack change ack change", "STALE ACKED body"},
		"accepted, refused":              {"subscribe ack change nack", "ERROR NACKED body refused: no (this)"},
		"accepted, refused, outstanding": {"subscribe ack change nack change", "STALE NACKED body refused: no (before)"},
		"had before, accepted":           {"resume", "STALE ACKED body"},
		"gone, outstanding":              {"subscribe ack remove", "STALE DOES_NOT_EXIST"},
		"gone":                           {"subscribe ack remove ack", "SYNCED DOES_NOT_EXIST"},
		"gone, refused":                  {"subscribe ack remove nack", "ERROR NACKED refused: no"},
		"back":                           {"subscribe ack remove ack change", "STALE REQUESTED body"},
		"back, accepted":                 {"subscribe ack remove ack change ack", "SYNCED ACKED body"},
		"never was":                      {"remove subscribe", "STALE DOES_NOT_EXIST"},
		"never was, accepted":            {"remove subscribe ack", "SYNCED DOES_NOT_EXIST"},
		"unsubscribed":                   {"subscribe ack unsubscribe", ""},
		"asked for again":                {"subscribe ack unsubscribe subscribe", "STALE REQUESTED body"},
	} {
		t.Run(name, func(t *testing.T) {
			watching(t, func(t *testing.T, w *watched) {
				stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(w.conn).DeltaAggregatedResources(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for i, step := range strings.Fields(test.steps) {
					w.step(stream, step, uint32(i+1))
				}
				want := ""
				if test.want != "" {
					want = "  ClusterLoadAssignment web " + test.want
				}
				got := slices.DeleteFunc(strings.Split(lines(w.fetch()), "\n"), func(line string) bool {
					return !strings.HasPrefix(line, "  ClusterLoadAssignment")
				})
				if strings.Join(got, "\n") != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		})
	}
}

// TestClientStatusOfWhatWasNeverSent: nothing more is sent before the client
// answers; that something does not exist is sent, too.
func TestClientStatusOfWhatWasNeverSent(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(w.conn).StreamAggregatedResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			what, want string
			names      []string
		}{
			{"nothing there", `dp dp/ADS
  ClusterLoadAssignment gone STALE DOES_NOT_EXIST
  0 clusters, 0 assignments: STALE`, []string{"gone"}},
			{"unanswered", `dp dp/ADS
  ClusterLoadAssignment gone STALE DOES_NOT_EXIST
  ClusterLoadAssignment late NOT_SENT DOES_NOT_EXIST
  0 clusters, 0 assignments: STALE`, []string{"gone", "late"}},
		} {
			m := &discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: "dp"}, TypeUrl: resourcev3.EndpointType, ResourceNames: step.names}
			if err := stream.Send(m); err != nil {
				t.Fatal(err)
			}
			w.wants(step.what, step.want)
		}
	})
}

// TestClientStatusOfWhatWaits has a change wait until the client answers what it
// was sent before: it is lagging, though nothing is on its way to it. What it has
// of that is not kept.
func TestClientStatusOfWhatWaits(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		change := func(name string, factor uint32) {
			w.eds.Update(publish.Update{Assignments: []publish.Assignment{{Name: name, Wire: wireOf(&endpointv3.ClusterLoadAssignment{
				Policy: &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(factor)},
			})}}})
			synctest.Wait()
		}
		change("api", 101)
		stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(w.conn).DeltaAggregatedResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.ask(stream, &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "dp"}, TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: []string{"api", "web"}})
		w.answer(stream, "")
		change("api", 102)
		change("web", 103)
		w.wants("both changed", `dp dp/ADS
  ClusterLoadAssignment api STALE ACKED body
  ClusterLoadAssignment web STALE ACKED
  0 clusters, 1 assignments: STALE`)
	})
}

// step has a data plane do something about the assignment of web, or the
// assignment become another.
func (w *watched) step(stream dataPlane, what string, number uint32) {
	w.Helper()
	m := &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "dp"}, TypeUrl: resourcev3.EndpointType}
	switch what {
	case "subscribe":
		m.ResourceNamesSubscribe = []string{"web"}
		w.ask(stream, m)
	case "resume":
		m.ResourceNamesSubscribe = []string{"web"}
		m.InitialResourceVersions = map[string]string{"web": "0123456789abcdef"}
		w.ask(stream, m)
	case "unsubscribe":
		m.ResourceNamesUnsubscribe = []string{"web"}
		w.ask(stream, m)
	case "ack":
		w.answer(stream, "")
	case "nack":
		w.answer(stream, "no")
	case "change":
		w.eds.Update(publish.Update{Assignments: []publish.Assignment{{Name: "web", Wire: wireOf(&endpointv3.ClusterLoadAssignment{
			Policy: &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(100 + number)},
		})}}})
	case "remove":
		w.eds.Update(publish.Update{RemovedAssignments: []string{"web"}})
	default:
		w.Fatalf("unknown step %q", what)
	}
	synctest.Wait()
}

// TestACheckersStatusIsItsView: it goes on with what it followed until it follows
// what is sent next.
func TestACheckersStatusIsItsView(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		stream := w.check(t.Context(), "checker")
		w.hds.Assign("checker", oneEndpoint())
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		w.report(stream)
		next := oneEndpoint()
		next.Clusters[0].Head.ClusterName = "other"
		w.hds.Assign("checker", next)
		w.wants("another was sent", `checker checker/HDS
  HealthCheckSpecifier checker STALE ACKED body`)
		w.lagging = map[string]bool{"checker": true}
		w.wants("something is held back", `checker checker/HDS
  HealthCheckSpecifier checker NOT_SENT ACKED body`)
	})
}

func TestClientStatusSelectsByNode(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		for _, id := range []string{"dp-1", "dp-2"} {
			w.answer(w.subscribe(t.Context(), id), "")
		}
		w.check(t.Context(), "checker-1")
		got := w.fetch(&matcherv3.NodeMatcher{NodeId: &matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: "-1"},
		}})
		var ids []string
		for _, c := range got.GetConfig() {
			ids = append(ids, c.GetNode().GetId())
		}
		if !slices.Equal(ids, []string{"dp-1", "checker-1"}) {
			t.Errorf("selected %v", ids)
		}
	})
}

// TestClientStatusHasWhatGrpcdebugReads reads of the answer about real clients
// what grpcdebug does of one: of each generic config, `xds status` prints these
// five, and `xds config` all as JSON. When it refuses an answer is in package csds.
func TestClientStatusHasWhatGrpcdebugReads(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		dp := w.subscribe(t.Context(), "dp-1")
		w.answer(dp, "")
		stream := w.check(t.Context(), "checker-1")
		w.hds.Assign("checker-1", oneEndpoint())
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		w.report(stream)
		got := w.fetch()
		var table strings.Builder
		for _, c := range got.GetConfig() {
			for _, g := range c.GetGenericXdsConfigs() {
				fmt.Fprintf(&table, "%s %s %s %t %s %s\n", c.GetClientScope(), g.GetName(), g.GetClientStatus(),
					len(g.GetVersionInfo()) == 16, kind(g.GetTypeUrl()), g.GetLastUpdated().AsTime().Format(time.RFC3339))
			}
		}
		// A bubble begins at that time.
		if want := `dp-1/ADS web ACKED true Cluster 2000-01-01T00:00:00Z
checker-1/HDS checker-1 ACKED true HealthCheckSpecifier 2000-01-01T00:00:00Z
`; table.String() != want {
			t.Errorf("xds status:\n%s\nwant\n%s", table.String(), want)
		}
		text, err := protojson.Marshal(got)
		if err != nil || !strings.Contains(string(text), "10.0.0.1") {
			t.Errorf("xds config: %v %s", err, text)
		}
	})
}

func TestClientStatusWhileEverythingChanges(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		const clients, flips = 8, 50
		w.eds.Update(publish.Update{Assignments: []publish.Assignment{{
			Name: "web", IDs: [][][]health.EndpointID{{{0}}},
			Wire: wireOf(&endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{}}}}}),
		}}})
		ctx, leave := context.WithCancel(t.Context())
		var busy sync.WaitGroup
		for i := range clients {
			dp := w.subscribe(ctx, fmt.Sprint("dp-", i))
			w.ask(dp, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: []string{"web"}})
			stream := w.check(ctx, fmt.Sprint("checker-", i))
			busy.Go(func() {
				for n := 0; ; n++ {
					r, err := dp.Recv()
					if err != nil {
						return
					}
					m := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}
					if n%3 == i%3 {
						m.ErrorDetail = &statuspb.Status{Message: "no"}
					}
					if dp.Send(m) != nil {
						return
					}
				}
			})
			busy.Go(func() {
				for {
					if _, err := stream.Recv(); err != nil {
						return
					}
				}
			})
		}
		busy.Go(func() {
			for n := range flips {
				w.eds.SetHealth([]publish.Health{{ID: 0, Status: health.Status(1 + n%2)}})
				w.hds.Assign(fmt.Sprint("checker-", n%clients), oneEndpoint())
				time.Sleep(time.Millisecond) // in virtual time: the readers run
			}
			leave()
		})
		asked, client := 0, statusv3.NewClientStatusDiscoveryServiceClient(w.conn)
		for ctx.Err() == nil {
			r, err := client.FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range r.GetConfig() {
				for _, g := range c.GetGenericXdsConfigs() {
					if g.GetConfigStatus() == statusv3.ConfigStatus_ERROR && g.GetErrorState() == nil {
						t.Fatalf("ERROR without an error: %v", g)
					}
					if g.GetConfigStatus() == statusv3.ConfigStatus_SYNCED && g.GetXdsConfig() == nil {
						t.Fatalf("SYNCED without what the client has: %v", g)
					}
				}
			}
			asked++
			time.Sleep(time.Millisecond / 2)
		}
		busy.Wait()
		if asked < flips {
			t.Errorf("asked %d times only", asked)
		}
	})
}

func wireOf(m *endpointv3.ClusterLoadAssignment) []byte { return source.EncodeAssignment(m).Wire() }
