package eds

import (
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"hdsd/health"
	"hdsd/internal/wire"
	"hdsd/publish"
)

// rawStream is a server's stream that receives given bytes, as grpc passes them on, and
// accepts every response.
type rawStream struct {
	grpc.ServerStream
	ctx      context.Context
	requests [][]byte
	sent     []*discoveryv3.DeltaDiscoveryResponse
}

func (s *rawStream) Context() context.Context { return s.ctx }

func (s *rawStream) RecvMsg(m any) error {
	synctest.Wait() // for what the server does about the one before
	if len(s.requests) == 0 {
		return io.EOF
	}
	b := s.requests[0]
	s.requests = s.requests[1:]
	if err := wire.Codec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, m); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

func (s *rawStream) SendMsg(m any) error {
	parts, err := m.(*response).MarshalWire()
	if err != nil {
		return err
	}
	// Both kinds of response can be decoded as this, except for the bodies.
	r := new(discoveryv3.DeltaDiscoveryResponse)
	if err := proto.Unmarshal(parts.Materialize(), r); err != nil {
		panic(err)
	}
	s.sent = append(s.sent, r)
	return nil
}

// fuzzStream plays requests, each after its length in two bytes, and checks that nothing
// of the stream is left at the end.
func fuzzStream(t *testing.T, delta bool, data []byte) {
	for _, fewest := range []int{0, 1} {
		fuzzOneStream(t, fewest, delta, data)
	}
}

func fuzzOneStream(t *testing.T, fewestShared int, delta bool, data []byte) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Options{
			fewestShared: fewestShared, MaxNames: 20, MaxResponseBytes: 300, ZoneVariants: true, ZoneByLocality: true,
			TTL: map[string]time.Duration{resourcev3.EndpointType: time.Minute, resourcev3.ClusterType: time.Second},
		})
		s.Update(publish.Update{
			Assignments: []publish.Assignment{assignment("a", 0, 3), assignment("b", 3, 1)},
			Clusters:    clusters("a", "1", "b", "1"),
		})
		ctx, cancel := context.WithCancel(t.Context())
		raw := &rawStream{ctx: ctx}
		for len(data) >= 2 {
			size := min(int(binary.BigEndian.Uint16(data)), len(data)-2)
			raw.requests = append(raw.requests, data[2:2+size])
			data = data[2+size:]
		}
		go func() {
			for i := range 5 {
				s.setHealth(0, health.Status(1+i%2))
				s.SetZoneHealth(zoneNamed("x"), []publish.Health{{ID: 1, Status: health.Status(1 + i%2)}}, []health.EndpointID{2})
			}
		}()
		err := s.serve(raw, delta, nil)
		cancel() // as grpc does
		switch status.Code(err) {
		case codes.OK, codes.Internal, codes.InvalidArgument, codes.ResourceExhausted:
		default:
			t.Errorf("ended with %v", err)
		}
		s.Close()
		for _, table := range s.published.tables() {
			equal(t, "slots", len(table.slots), 2)
			equal(t, "variants", table.chosen.Load(), int64(0))
			equal(t, "groups", len(table.groups), 0)
			for _, slot := range table.slots {
				equal(t, "watches and positions left on "+slot.name, len(slot.watches)+len(slot.positions), 0)
			}
		}
	})
}

func addSeed(f *testing.F, messages ...proto.Message) {
	var data []byte
	for _, m := range messages {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		data = binary.BigEndian.AppendUint16(data, uint16(len(b)))
		data = append(data, b...)
	}
	f.Add(data)
}

func FuzzDiscoveryRequest(f *testing.F) {
	f.Add([]byte("\x00\x01\xff"))
	addSeed(f, want(resourcev3.EndpointType, "a", "b", "none"), &discoveryv3.DiscoveryRequest{
		TypeUrl: resourcev3.EndpointType, ResponseNonce: "1.1", ResourceNames: []string{"*", "a"},
	}, &discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResponseNonce: "1.0"})
	located := want(resourcev3.EndpointType, "a")
	located.Node.Locality = &corev3.Locality{Zone: "x"}
	located.Node.UserAgentName = "envoy"
	located.ResourceLocators = []*discoveryv3.ResourceLocator{locator("a", "zone", "x"), locator("a"), locator("none", "zone", ""), locator("*")}
	addSeed(f, located, &discoveryv3.DiscoveryRequest{
		TypeUrl: resourcev3.EndpointType, ResponseNonce: "1.1", ResourceLocators: located.GetResourceLocators()[1:],
	})
	addSeed(f, want(resourcev3.ClusterType), want(resourcev3.EndpointType), &discoveryv3.DiscoveryRequest{
		TypeUrl: resourcev3.ClusterType, ResponseNonce: "1.1", ErrorDetail: nack(new(discoveryv3.DeltaDiscoveryResponse), "no").GetErrorDetail(),
	}, want("unknown", "x"), want("", "x"))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzStream(t, false, data) })
}

func FuzzDeltaRequest(f *testing.F) {
	f.Add([]byte("\x00\x01\xff"))
	reconnect := subscribe(resourcev3.EndpointType)
	reconnect.InitialResourceVersions = map[string]string{"a": "0000000000000001", "gone": "x"}
	addSeed(f, reconnect, subscribe(resourcev3.EndpointType, "a", "*", "none"), unsubscribe(resourcev3.EndpointType, "*", "a"))
	located := subscribeWithTTL(resourcev3.EndpointType, "a", "*")
	located.Node.UserAgentName = "gRPC Go"
	located.Node.Locality = &corev3.Locality{Zone: "x"}
	located.ResourceLocatorsSubscribe = []*discoveryv3.ResourceLocator{locator("a", "zone", "x"), locator("a", "x", "y"), locator("none"), locator("")}
	located.InitialResourceVersions = map[string]string{"a": "1", "none": "x"}
	addSeed(f, located, &discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: resourcev3.EndpointType, ResponseNonce: "1.1", ResourceNamesUnsubscribe: []string{"a"},
		ResourceLocatorsUnsubscribe: located.GetResourceLocatorsSubscribe()[:2],
	})
	addSeed(f, subscribe(resourcev3.ClusterType), subscribe(resourcev3.EndpointType, "a"), &discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: resourcev3.ClusterType, ResponseNonce: "1.1", ResourceNamesUnsubscribe: []string{"a"},
	}, &discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: resourcev3.EndpointType, ResponseNonce: "1.2", ErrorDetail: nack(new(discoveryv3.DeltaDiscoveryResponse), "no").GetErrorDetail(),
	})
	f.Fuzz(func(t *testing.T, data []byte) { fuzzStream(t, true, data) })
}

// FuzzPoll posts any input. After an answer with 200, a poll with its version gets 304.
func FuzzPoll(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `null`, `[]`, `{"resource_names":["a","*",""],"node":{"id":"dp"}}`, `{"resourceNames":["a","a"],"resource_locators":[{"name":"b"},null]}`,
		`{"resource_locators":[{"name":"a","dynamic_parameters":{"zone":"x"}},{"name":"b"},{"name":"*"}],"node":{"locality":{"zone":"x"}}}`,
		`{"version_info":"0000000000000001","error_detail":{"code":3,"details":[{"@type":"x/y"}]},"response_nonce":"ef46db3751d8e999"}`,
		`{"type_url":"` + resourcev3.ClusterType + `","resource_names":["\ud800"]}`, `{"resource_names":["` + "\xff" + `"],"unknown":{"x":[1e999]}}`,
	} {
		f.Add(false, []byte(body))
		f.Add(true, []byte(body))
	}
	s := NewServer(Options{MaxNames: 20, ZoneVariants: true, ZoneByLocality: true})
	s.Update(publish.Update{
		Assignments: []publish.Assignment{assignment("a", 0, 3), assignment("b", 3, 1)},
		Clusters:    clusters("a", "1", "b", "1"),
	})
	s.SetZoneHealth(zoneNamed("x"), []publish.Health{{ID: 0, Status: health.Unhealthy}}, nil)
	f.Fuzz(func(t *testing.T, ofClusters bool, body []byte) {
		path := EndpointsPath
		if ofClusters {
			path = ClustersPath
		}
		answer := post(s, path, string(body))
		r := answered(t, answer)
		switch answer.StatusCode {
		case http.StatusNotModified, http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			return
		case http.StatusOK:
		default:
			t.Fatalf("status %d", answer.StatusCode)
		}
		m := new(discoveryv3.DiscoveryRequest)
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, m); err != nil {
			t.Fatal(err)
		}
		m.VersionInfo, m.ErrorDetail = r.GetVersionInfo(), nil
		m.Node = &corev3.Node{Locality: m.GetNode().GetLocality()}
		if code, _ := pollREST(t, s, path, m); code != http.StatusNotModified {
			t.Fatalf("asked again for %v, status %d", m, code)
		}
	})
}
