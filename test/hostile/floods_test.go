package hostile

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/test/envoy"
	"hdsd/test/fleet"
)

// FLOODS=full runs the floods in full size: some minutes, and 2 GB for this side.
// FLOODS_BINARY is another hdsd to run, for figures of before.
var fullFloods = os.Getenv("FLOODS") == "full"

// of gives the size of a flood, and the full one where that is asked for.
func of(small, full int) int {
	if fullFloods {
		return full
	}
	return small
}

// TestFloodsAreBounded: whatever is sent, by how many, hdsd needs at most 300 MiB more and
// 400 MiB in all where 65 MiB may be in flight, says what it refuses, and stops when it is told to.
func TestFloodsAreBounded(t *testing.T) {
	if !fullFloods {
		t.Parallel()
	}
	for _, attack := range []struct {
		name string
		run  func(*site, *testing.T)
		logs string
	}{
		{"reports of tiny entries", (*site).tinyEntries, "report_refused"},
		{"long names", (*site).longNames, "request_refused"},
		{"long names on one connection", (*site).longNamesOnOneConnection, "request_refused or limit_reached"},
		{"many names", (*site).manyNames, "limit_reached"},
		{"too large messages", (*site).tooLarge, "request_refused"},
		{"first messages", (*site).firstMessages, "report_refused"},
		{"requests for status", (*site).statusRequests, "request_refused"},
		{"REST bodies", (*site).bodies, "request_refused"},
		{"REST names", (*site).restNames, "request_refused"},
		{"every kind at once", (*site).everyKind, "report_refused"},
		{"claims through the relay", (*site).claims, "limit_reached"},
	} {
		t.Run(attack.name, func(t *testing.T) {
			s, _ := newSiteBy(t, func(c *fleet.Coordinator) {
				c.Configure("sources:", "limits: {max_bytes_in_flight: 68157440}\nsources:") // by default it is more where there is more memory
				if c.Binary = cmp.Or(os.Getenv("FLOODS_BINARY"), fleet.Plain(t)); strings.Contains(attack.name, "relay") {
					relayed(t, c)
				}
			})
			idle := s.resident(t)
			done := make(chan struct{})
			peak := 0.0
			var watching sync.WaitGroup
			watching.Go(func() {
				tick := time.NewTicker(50 * time.Millisecond)
				defer tick.Stop()
				for {
					peak = max(peak, s.resident(t))
					select {
					case <-done:
						return
					case <-tick.C:
					}
				}
			})
			attack.run(s, t)
			began := time.Now()
			s.unharmed(t)
			t.Logf("steady after %v", time.Since(began).Round(time.Millisecond))
			if code, took := s.Terminate(); code != 0 || took > 10*time.Second {
				t.Errorf("exit status %d, %v after SIGTERM", code, took)
			} else {
				t.Logf("stopped after %v", took.Round(time.Millisecond))
			}
			close(done)
			watching.Wait()
			t.Logf("%.0f MiB more, %.0f in all", (peak-idle)/(1<<20), peak/(1<<20))
			if peak-idle > 300<<20 || peak > 400<<20 {
				t.Errorf("hdsd needs %.0f MiB more, %.0f in all", (peak-idle)/(1<<20), peak/(1<<20))
			}
			s.says(t, attack.logs)
		})
	}
}

// says checks that the log has an event of refusals, or one of two ("a or b"), which names
// the caller and what to do.
func (s *site) says(t *testing.T, events string) {
	t.Helper()
	lines := 0
	for line := range strings.Lines(s.Logs()) {
		if !slices.ContainsFunc(strings.Split(events, " or "), func(event string) bool { return strings.Contains(line, `"event":"`+event+`"`) }) {
			continue
		}
		lines++
		if !strings.Contains(line, `"caller":"caller`) || !strings.Contains(line, "raise limits.") && !strings.Contains(line, ": use ") &&
			!strings.Contains(line, ": report only") && !strings.Contains(line, ": make ") {
			t.Errorf("the log does not say who it is, or what to do: %s", line)
		}
	}
	if lines == 0 {
		t.Errorf("the log does not say %s", events)
	}
	t.Logf("%d lines of %s", lines, events)
}

// resident is how much memory the process has; zero when it has ended.
func (s *site) resident(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.PID()))
	if err != nil {
		return 0
	}
	var all, resident float64
	if _, err := fmt.Sscan(string(text), &all, &resident); err != nil {
		return 0
	}
	return resident * float64(os.Getpagesize())
}

// inParallel runs an attack by many at a time.
func inParallel(n, atOnce int, attack func(i int)) {
	turns := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range n {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			attack(i)
		})
	}
	all.Wait()
}

// attempt opens a stream, sends messages, and returns how it ends.
func attempt(on *grpc.ClientConn, patience time.Duration, method string, messages ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	opened, err := on.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if opened.SendMsg(m) != nil {
			break
		}
	}
	for {
		var got raw
		if err := opened.RecvMsg(&got); err != nil {
			return err
		}
	}
}

// tinyEntries sends reports of many entries that take two bytes each, flat and nested.
func (s *site) tinyEntries(t *testing.T) {
	size := of(12<<20, 60<<20)
	flat := raw(field(2, bytes.Repeat([]byte{0x0a, 0}, size/2)))
	nested := raw(field(2, field(2, field(2, bytes.Repeat([]byte{0x12, 0}, size/2)))))
	few := raw(field(2, bytes.Repeat([]byte{0x0a, 0}, 100_000))) // within the bytes that are taken
	ended := make(map[codes.Code]int)
	var mu sync.Mutex
	inParallel(of(9, 100), 100, func(i int) {
		on := s.rawly(t)
		defer on.Close()
		node, err := proto.Marshal(first(&corev3.Node{Id: fmt.Sprint("bomber-", i)}))
		if err != nil {
			t.Error(err)
		}
		err = attempt(on, fleet.Patience, hdsMethod, raw(node), []raw{flat, nested, few}[i%3])
		mu.Lock()
		defer mu.Unlock()
		ended[status.Code(err)]++
	})
	refused(t, ended)
}

// encodedAs gives the encoded message that each of many streams sends.
func encodedAs(t *testing.T, m proto.Message) raw {
	t.Helper()
	encoded, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// oneLongName is a request with one name that makes all of its size.
func oneLongName(t *testing.T) raw {
	return encodedAs(t, &discoveryv3.DiscoveryRequest{TypeUrl: assignments, ResourceNames: []string{strings.Repeat("x", of(12<<20, 60<<20))}})
}

// longNames opens streams, each on a connection of its own, and sends a long name on each.
func (s *site) longNames(t *testing.T) { s.onEach(t, adsMethod, oneLongName(t)) }

// longNamesOnOneConnection does so on one connection. Others on it are answered.
func (s *site) longNamesOnOneConnection(t *testing.T) {
	on := s.rawly(t)
	ended := make(chan map[codes.Code]int, 1)
	go func() { ended <- floodOne(t, on) }()
	slowest, asked := time.Duration(0), 0
	for ; ; asked++ {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), fleet.Patience)
		var answer raw
		if err := on.Invoke(ctx, "/grpc.health.v1.Health/Check", raw{}, &answer); err != nil {
			t.Error("a small request beside the flood is not answered:", err)
		}
		cancel()
		slowest = max(slowest, time.Since(began))
		select {
		case codes := <-ended:
			t.Logf("%d small requests beside it took up to %v", asked+1, slowest.Round(time.Millisecond))
			refused(t, codes)
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// floodOne sends long names on many streams of one connection, and counts how they end.
func floodOne(t *testing.T, on *grpc.ClientConn) map[codes.Code]int {
	message, ended := oneLongName(t), make(map[codes.Code]int)
	var mu sync.Mutex
	inParallel(of(12, 100), 100, func(int) {
		code := status.Code(attempt(on, fleet.Patience, adsMethod, message))
		mu.Lock()
		defer mu.Unlock()
		ended[code]++
	})
	return ended
}

// refused checks that messages were refused, and none taken.
func refused(t *testing.T, ended map[codes.Code]int) {
	t.Helper()
	t.Logf("ended with %v", ended)
	if ended[codes.ResourceExhausted] == 0 || ended[codes.OK] > 0 {
		t.Errorf("ended with %v", ended)
	}
}

// tooLarge sends messages that are larger than any may be.
func (s *site) tooLarge(t *testing.T) {
	message := make(raw, 65<<20)
	for _, method := range []string{hdsMethod, adsMethod, statusMethod} {
		inParallel(of(2, 30), 30, func(int) {
			on := s.rawly(t)
			defer on.Close()
			if err := attempt(on, fleet.Patience, method, message); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "limits.max_message_bytes") {
				t.Errorf("%s ends with %v", method, err)
			}
		})
	}
}

// manyNames sends names of a plausible length, as many as one stream may have by their
// bytes.
func (s *site) manyNames(t *testing.T) {
	names := make([]string, of(20_000, 80_000))
	for i := range names {
		names[i] = fmt.Sprintf("%0600d", i)
	}
	s.onEach(t, deltaMethod, encodedAs(t, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: assignments, ResourceNamesSubscribe: names}))
}

// claims are versions that data planes say they have of what does not exist, at a relay
// whose control plane does not answer.
func (s *site) claims(t *testing.T) {
	had := map[string]string{}
	for i := range of(600_000, 1_000_000) {
		had[fmt.Sprintf("%07x", i)] = "1"
	}
	s.onEach(t, deltaMethod, encodedAs(t, &discoveryv3.DeltaDiscoveryRequest{
		Node: &corev3.Node{Id: "edge"}, TypeUrl: assignments, ResourceNamesSubscribe: []string{"web"}, InitialResourceVersions: had,
	}))
}

// relayed puts hdsd in front of a control plane that takes everything and says nothing.
func relayed(t *testing.T, c *fleet.Coordinator) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := grpc.NewServer(grpc.MaxRecvMsgSize(1<<30), grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		for {
			if err := stream.RecvMsg(new(raw)); err != nil {
				return err
			}
		}
	}))
	var serving sync.WaitGroup
	serving.Go(func() { _ = silent.Serve(listener) })
	t.Cleanup(func() { silent.Stop(); serving.Wait() })
	c.Configure("sources:", fmt.Sprintf("relay: {upstream: {api_config_source: {api_type: AGGREGATED_DELTA_GRPC, transport_api_version: V3, "+
		"grpc_services: [{google_grpc: {target_uri: %q, stat_prefix: x}}]}}}\nsources:", listener.Addr()))
}

// firstMessages are nodes of the size of a flood.
func (s *site) firstMessages(t *testing.T) {
	s.onEach(t, hdsMethod, encodedAs(t, first(&corev3.Node{Id: strings.Repeat("x", of(12<<20, 60<<20))})))
}

// statusRequests ask for the status of a client with a very long name.
func (s *site) statusRequests(t *testing.T) {
	s.onEach(t, statusMethod, encodedAs(t, &statusv3.ClientStatusRequest{Node: &corev3.Node{Id: strings.Repeat("x", of(12<<20, 60<<20))}}))
}

// onEach sends a message on each of many streams, each on a connection of its own.
func (s *site) onEach(t *testing.T, method string, message raw) {
	inParallel(of(12, 100), 100, func(int) {
		on := s.rawly(t)
		defer on.Close()
		_ = attempt(on, 10*time.Second, method, message) // refused, or held for a while
	})
}

// everyKind runs all kinds at once, so that they share the budget. A connection that has
// far more than others may end then.
func (s *site) everyKind(t *testing.T) {
	onOne := func(t *testing.T) {
		if ended := floodOne(t, s.rawly(t)); ended[codes.OK] > 0 {
			t.Errorf("long names on one connection ended with %v", ended)
		}
	}
	var all sync.WaitGroup
	for _, run := range []func(*testing.T){
		s.tinyEntries, s.longNames, onOne, s.manyNames, s.tooLarge, s.firstMessages, s.statusRequests, s.bodies, s.restNames,
	} {
		all.Go(func() { run(t) })
	}
	all.Wait()
}

// restNames posts one long name.
func (s *site) restNames(t *testing.T) {
	text := `{"resourceNames":["` + strings.Repeat("x", of(8<<20, 60<<20)) + `"]}`
	inParallel(of(16, 60), 60, func(int) {
		if code := s.post(t, "/v3/discovery:endpoints", strings.NewReader(text), ""); code == http.StatusOK {
			t.Errorf("a long name is answered with %d", code)
		}
	})
}

// bodies posts large requests in JSON.
func (s *site) bodies(t *testing.T) {
	size := of(8<<20, 60<<20)
	body := `{"endpointHealthResponse":{"endpointsHealth":[{}` + strings.Repeat(",{}", size/3) + `]}}`
	names := `{"resourceNames":[""` + strings.Repeat(`,""`, size/3) + `]}`
	codes := make(map[int]int)
	var mu sync.Mutex
	inParallel(of(16, 60), 60, func(i int) {
		path, text := "/v3/discovery:health_check", body
		if i%2 == 0 {
			path, text = "/v3/discovery:endpoints", names
		}
		var from io.Reader = strings.NewReader(text)
		if i%4 < 2 {
			from = io.LimitReader(from, int64(len(text))) // hides the length
		}
		code := s.post(t, path, from, "bomber")
		mu.Lock()
		defer mu.Unlock()
		codes[code]++
	})
	t.Logf("answers: %v", codes)
	if codes[http.StatusOK] > 0 {
		t.Errorf("answers: %v", codes)
	}
	envoy.Eventually(t, fleet.Patience, "a small request to be answered", func() bool {
		return s.post(t, "/v3/discovery:endpoints", strings.NewReader(`{"resourceNames":["web"]}`), "") == http.StatusOK
	})
}
