package hds_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/hds"
	"hdsd/health"
	"hdsd/internal/wire"
)

// manyEndpoints gives endpoints of one cluster.
func manyEndpoints(n int) (all []checked) {
	for i := range n {
		all = append(all, checked{health.EndpointID(i + 1), fmt.Sprintf("web/a/10.1.%d.%d:80", i>>8, i&255)})
	}
	return all
}

func saidOf(endpoints []checked, s corev3.HealthStatus) (all []said) {
	for _, e := range endpoints {
		all = append(all, said{e.name, s, 200})
	}
	return all
}

func bytesField(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

// empty gives n empty messages in one field: two bytes each.
func empty(number protowire.Number, n int) []byte {
	return bytes.Repeat(bytesField(number, nil), n)
}

// bombs are reports that are small on the wire, and large when they are decoded.
func bombs() map[string][]byte {
	nested := func(n int) []byte { return bytesField(2, bytesField(2, empty(2, n))) }
	return map[string][]byte{
		"flat entries":            bytesField(2, empty(1, 2001)),
		"nested entries":          bytesField(2, nested(2001)),
		"localities":              bytesField(2, bytesField(2, empty(2, 4100))),
		"clusters":                bytesField(2, empty(2, 4100)),
		"in two parts":            append(bytesField(2, nested(1500)), bytesField(2, nested(1500))...),
		"fields of one entry":     bytesField(2, bytesField(1, bytesField(3, empty(1, 1500)))),
		"fields of a node":        bytesField(1, bytesField(1, empty(8, 70_000))),
		"many bytes":              bytesField(2, empty(1, 1<<20)),
		"many bytes of one entry": bytesField(2, bytesField(1, make([]byte, 2<<20))),
	}
}

func (f *fixture) raw() *grpc.ClientConn {
	return f.dial("10.1.0.9", grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.Codec())))
}

// TestReportsOfFarMoreThanAssigned are refused by what is on the wire.
func TestReportsOfFarMoreThanAssigned(t *testing.T) {
	for name, bomb := range bombs() {
		bubble(t, hds.Options{}, func(f *fixture) {
			f.assigning(manyEndpoints(1000)...)
			stream, err := f.raw().NewStream(f.ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, healthv3.HealthDiscoveryService_StreamHealthCheck_FullMethodName)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range [][]byte{encode(t, hello(nodeIn("a", "z"))), bomb} {
				message := wire.Bytes(m)
				if err := stream.SendMsg(&message); err != nil {
					t.Fatal(err)
				}
				if err := stream.RecvMsg(&message); err != nil {
					if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "1000 endpoints") {
						t.Errorf("%s: %v", name, err)
					}
				}
			}
			if log := f.log.String(); !strings.Contains(log, `"event":"report_refused"`) || !strings.Contains(log, `"checker":"a"`) {
				t.Errorf("%s: the log has %s", name, log)
			}
			if err := testutil.GatherAndCompare(f.registry, strings.NewReader(
				"# HELP hdsd_hds_refused_reports_total Reports and first messages refused because they list or weigh far more than the checker is assigned.\n"+
					"# TYPE hdsd_hds_refused_reports_total counter\nhdsd_hds_refused_reports_total 1\n"), "hdsd_hds_refused_reports_total"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestTwiceWhatIsAssigned is taken, in whatever order, as long as the plans that a
// report may follow have half as much.
func TestTwiceWhatIsAssigned(t *testing.T) {
	all := manyEndpoints(4001)
	for n, want := range map[int]codes.Code{3000: codes.OK, 4000: codes.OK, 4001: codes.ResourceExhausted} {
		for _, flat := range []bool{false, true} {
			m := report(saidOf(all[:n], up)...)
			if flat {
				m.GetEndpointHealthResponse().ClusterEndpointsHealth = nil
			}
			var r hds.Reader
			r.Assign(assignment(all[:2000]...))
			r.Assign(assignment(all[:1]...))
			if _, _, _, err := r.Read(encode(t, m)); status.Code(err) != want {
				t.Errorf("%d entries, flat %t: %v, want %v", n, flat, err, want)
			}
		}
	}
}

func TestLargeFirstMessages(t *testing.T) {
	for name, node := range map[string][]byte{
		"fields": empty(8, 70_000),
		"bytes":  bytesField(2, make([]byte, 2<<20)),
	} {
		bubble(t, hds.Options{}, func(f *fixture) {
			stream, err := f.raw().NewStream(f.ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, healthv3.HealthDiscoveryService_StreamHealthCheck_FullMethodName)
			if err != nil {
				t.Fatal(err)
			}
			message := wire.Bytes(bytesField(1, bytesField(1, append(bytesField(1, []byte("a")), node...))))
			if err := stream.SendMsg(&message); err != nil {
				t.Fatal(err)
			}
			if err := stream.RecvMsg(&message); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "node") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

func TestFetchedBombs(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		f.assigning(manyEndpoints(1000)...)
		f.fetch("10.1.0.9", hello(nodeIn("a", "z")))
		ctx := metadata.AppendToOutgoingContext(f.ctx, hds.NodeHeader, "a")
		for name, bomb := range bombs() {
			if name == "fields of a node" {
				continue // a first message
			}
			message := wire.Bytes(bomb)
			for range 2 { // the same again is refused again
				err := f.raw().Invoke(ctx, healthv3.HealthDiscoveryService_FetchHealthCheck_FullMethodName, &message, &wire.Bytes{})
				if status.Code(err) != codes.ResourceExhausted {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		if got := f.fetch("10.1.0.9", report(saidOf(manyEndpoints(1000), up)...), "a"); got.code != codes.OK {
			t.Errorf("a report of what is assigned: %v", got)
		}
	})
}

func TestFetchedBombsByREST(t *testing.T) {
	server := hds.NewServer(hds.Options{}, &recorder{})
	defer server.Close()
	entries := func(n int, separator string) string {
		return `{"endpointHealthResponse":{"endpointsHealth":[{}` + strings.Repeat(separator+"{}", n) + `]}}`
	}
	for name, body := range map[string]string{
		"entries":    entries(1500, ","),
		"more":       entries(200_000, ","),
		"with space": entries(50_000, ","+strings.Repeat(" ", 1000)),
	} {
		want := http.StatusRequestEntityTooLarge
		if name == "entries" {
			want = http.StatusTooManyRequests
		}
		if code, said := postTo(server, hds.FetchPath, helloJSON); code != http.StatusOK { // each time, for a bomb may take longer than the session lasts
			t.Fatalf("%d %s", code, said)
		}
		if code, said := postTo(server, hds.FetchPath, body); code != want {
			t.Errorf("%s: %d %s, want %d", name, code, said, want)
		}
	}
}

// TestDecodingStopsWithTheStream: nobody waits for what a stream that has ended said.
func TestDecodingStopsWithTheStream(t *testing.T) {
	all := manyEndpoints(3000)
	m := report(saidOf(all, up)...)
	flat := report(saidOf(all, up)...)
	flat.GetEndpointHealthResponse().ClusterEndpointsHealth = nil
	r := hds.Reader{Generally: true, Stopped: true}
	r.Assign(assignment(all...))
	for _, message := range [][]byte{encode(t, m), encode(t, flat)} {
		if _, _, _, err := r.Read(message); status.Code(err) != codes.Canceled {
			t.Errorf("got %v", err)
		}
	}
}

// TestOfLargeReportsAHashIsKept, and they are compared by it.
func TestOfLargeReportsAHashIsKept(t *testing.T) {
	all := manyEndpoints(12_000)
	one := encode(t, report(saidOf(all, up)...))
	changed := saidOf(all, up)
	changed[11_999].status = down
	other := encode(t, report(changed...))
	small := encode(t, report(saidOf(all[:10], up)...))
	var r hds.Reader
	r.Assign(assignment(all...))
	read := func(what string, message []byte, want int) {
		t.Helper()
		votes, strange, _, err := r.Read(bytes.Clone(message))
		if err != nil || len(votes) != want || strange != 0 {
			t.Errorf("%s: %d votes, %d strange, %v; want %d votes", what, len(votes), strange, err, want)
		}
		if large, kept := len(message) > 4<<10, r.Kept(); large == (kept > 0) {
			t.Errorf("%s: %d of %d bytes are kept", what, kept, len(message))
		}
	}
	read("the first", one, 12_000)
	read("the same", one, 0)
	read("another", other, 1)
	read("the same", other, 0)
	read("the first again", one, 1)
	r.Assign(assignment(all[1:]...))
	read("on an earlier plan", one, 0)
	r.Assign(assignment(all...))
	read("the same on a new plan", one, 12_000)
	read("a small one", small, 0)
	read("a small one again", small, 0)
	read("a large one after it", other, 1)
	r = hds.Reader{}
	r.Assign(assignment(all[:1]...))
	read("few endpoints", encode(t, report(saidOf(all[:1], up)...)), 1)
	few := encode(t, report(saidOf(all[:300], up)...))
	if _, _, _, err := r.Read(few); err != nil || r.Kept() > 0 {
		t.Errorf("%d of %d bytes are kept of a checker with one endpoint, %v", r.Kept(), len(few), err)
	}
}
