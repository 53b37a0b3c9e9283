package recording

import (
	"bytes"
	"compress/flate"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/catalog"
	"hdsd/envoy/specifier"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/source"
	"hdsd/source/sample"
)

// run is a machine with a recording.
type run struct {
	*machine.Machine
	t     testing.TB
	now   time.Time
	file  bytes.Buffer
	sent  map[string]*specifier.Specifier // latest specifiers, by checker
	e     *Encoder
	w     *Writer
	rules *catalog.Rules
}

// newRun returns a run that is restored from a state.
func newRun(t testing.TB, start time.Time, state *log.State, c *configv1.Config) *run {
	timing := machine.Timing{Report: time.Second, Grace: 5 * time.Second, Settle: time.Second}
	r := &run{Machine: machine.New(timing), t: t, now: start, sent: map[string]*specifier.Specifier{}, rules: catalog.NewRules(c)}
	var err error
	r.e, r.w, err = New(&r.file, &Header{Version: "1.2.3", Platform: "test/test", Node: "n", Start: start, Timing: timing}, state, func(p Piece) bool {
		_, err := r.w.Write(p)
		return err == nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Restore(state)
	return r
}

// step lets the machine handle an event 250 ms after the previous one.
func (r *run) step(event machine.Event) {
	r.now = r.now.Add(250 * time.Millisecond)
	r.e.Begin(r.now, event)
	r.Step(r.now, event, func(e machine.Effect) {
		r.e.Effect(e)
		if e, ok := e.(machine.SpecifierMade); ok {
			r.sent[e.Checker] = e.Specifier
		}
	})
	r.e.End()
}

// deliver delivers clusters of a source.
func (r *run) deliver(clusters ...*source.Cluster) {
	d := catalog.Delivery{Rules: r.rules, Answered: map[string]bool{"local": true}, Complete: true}
	for _, c := range clusters {
		d.Changed = append(d.Changed, catalog.Change{Cluster: catalog.Prepare(c, r.rules)})
	}
	r.step(machine.Delivered{Delivery: d})
}

// runFleet lets three checkers report all endpoints up, then down. Then it gives orders, and ends the
// recording.
func (r *run) runFleet(clusters ...*source.Cluster) {
	r.deliver(clusters...)
	r.step(machine.Begun{})
	ids := []string{"a", "b", "c"}
	for _, id := range ids {
		r.step(machine.Connected{Checker: health.Checker{
			ID: id, Version: "envoy/1.40.0", Locality: health.Locality{Zone: id}, Metadata: map[string]string{"vpc": "blue"},
			Abilities: health.Abilities{health.HTTP: {}, health.TCP: {}, health.GRPC: {}, health.FreshCodes: {}},
		}})
	}
	for i := range 60 {
		for _, id := range ids {
			s := r.sent[id]
			report := machine.Reported{Checker: id}
			if s != nil && i%10 == 9 {
				r.step(machine.Followed{Checker: id, Specifier: s})
				for _, endpoint := range s.Order {
					vote := health.Vote{Endpoint: endpoint, Status: health.Healthy, HTTPStatusCode: 200}
					if i > 40 {
						vote.Status, vote.HTTPStatusCode = health.Unhealthy, 503
					}
					report.Votes = append(report.Votes, vote)
				}
			}
			r.step(report)
		}
		r.step(machine.Tick{ReceivedUntil: r.now.Add(time.Millisecond * time.Duration(i))})
	}
	r.step(&machine.SetOverride{Override: log.Override{Scope: health.Endpoint{Cluster: clusters[0].Name}, Status: health.Draining, Reason: "why", Author: "ann", Until: r.now.Add(time.Minute)}})
	r.step(&machine.Freeze{Author: "ann", Reason: "why", Hold: true})
	r.step(&machine.SetTrust{Checker: "a", Trust: log.Trust{Level: log.Distrusted, Author: "ann", Reason: "why"}})
	r.step(&machine.Unfreeze{Author: "ann"})
	r.step(&machine.ClearTrust{Checker: "a", Author: "ann"})
	r.step(&machine.ClearOverrides{All: true, Author: "ann"})
	r.step(annotation(r.now))
	r.step(machine.Silenced{Checker: "b", Silent: true})
	r.step(machine.StreamEnded{Checker: "c"})
	r.step(machine.Disconnected{Checker: "c"})
	r.step(machine.Answered{})
	r.step(machine.Tick{})
	r.e.Flush()
	if err := r.w.End(Stopped); err != nil {
		r.t.Fatal(err)
	}
}

// annotation returns an order with all fields of an event.
func annotation(now time.Time) *machine.Annotate {
	return &machine.Annotate{Event: log.Event{
		Time: now, Kind: 1, Cluster: "web", Address: "10.0.0.1:80", Checker: "a", Locality: health.Locality{Region: "eu", Zone: "a"},
		Author: "ann", Identity: "spiffe://corp/ann", Text: "why", Whole: true,
	}}
}

// TestAnAnnotationComesBack covers all fields of its event, which digests do not have.
func TestAnAnnotationComesBack(t *testing.T) {
	r := newRun(t, time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), &log.State{}, config())
	r.runFleet(sample.Web("web", "10.0.0.1:80"))
	reader, err := NewReader(bytes.NewReader(r.file.Bytes()), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var found []log.Event
	if _, err := Replay(reader, func(e *Entry, effect machine.Effect) error {
		if order, ok := e.Event.(*machine.Annotate); ok {
			found = append(found, order.Event, effect.(machine.Logged).Events[0])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || !found[0].Time.Equal(found[1].Time) {
		t.Fatalf("there are %+v", found)
	}
	want := annotation(found[0].Time).Event
	if found[0] != want || found[1] != want || want.Time.Before(reader.Start) {
		t.Errorf("%+v, want %+v", found, want)
	}
}

// replay replays a recording.
func replay(file []byte) (Result, error) {
	r, err := NewReader(bytes.NewReader(file), time.Now())
	if err != nil {
		return Result{}, err
	}
	return Replay(r, func(*Entry, machine.Effect) error { return nil })
}

// config returns a configuration with two checkers for each endpoint.
func config() *configv1.Config {
	return &configv1.Config{Assignment: &configv1.Assignment{Redundancy: 2}, Verdict: &configv1.Verdict{}, Checkers: &configv1.Checkers{}}
}

// TestReplayOfAllEvents covers all events, with and without monotonic readings.
func TestReplayOfAllEvents(t *testing.T) {
	for name, start := range map[string]time.Time{"monotonic": time.Now(), "wall": time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, start, &log.State{}, config())
			r.runFleet(sample.Web("web", "10.0.0.1:80", "10.0.0.2:80"), sample.Web("pay", "10.0.0.3:80"))
			got, err := replay(r.file.Bytes())
			if err != nil || got.Difference != "" || got.Reason != Stopped || got.Events < 250 || got.Decisions == 0 || !got.Last.Round(0).Equal(r.now.Round(0)) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestCombine covers both readings of a time, and times that cannot have them.
func TestCombine(t *testing.T) {
	base := time.Now()
	for _, wall := range []time.Time{base.Add(time.Minute).Round(0), base.Add(-5 * time.Hour).Round(0), time.Date(2100, 1, 1, 0, 0, 0, 7, time.UTC)} {
		for _, elapsed := range []time.Duration{0, 1, time.Minute, 100 * 24 * time.Hour} {
			got, ok := combine(base, elapsed, wall)
			if !ok || !got.Round(0).Equal(wall) || got.Sub(base) != elapsed || got.Add(time.Hour).Sub(base) != elapsed+time.Hour || !got.Add(time.Hour).Round(0).Equal(wall.Add(time.Hour)) {
				t.Errorf("%v after the start, at %v: %v, %v", elapsed, wall, got, ok)
			}
		}
	}
	for _, wall := range []time.Time{time.Date(1800, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if got, ok := combine(base, 0, wall); ok {
			t.Errorf("%v is %v", wall, got)
		}
	}
}

// TestReplayWithSetClock replays a run whose wall clock is set back, while the monotonic clock goes on.
func TestReplayWithSetClock(t *testing.T) {
	r := newRun(t, time.Now(), &log.State{}, config())
	r.deliver(sample.Web("web", "10.0.0.1:80"))
	r.step(machine.Begun{})
	before := r.now
	var ok bool
	if r.now, ok = combine(r.now, time.Second, r.now.Add(-time.Hour).Round(0)); !ok {
		t.Fatal("no such time")
	}
	r.runFleet(sample.Web("web", "10.0.0.1:80", "10.0.0.2:80"))
	reader, err := NewReader(bytes.NewReader(r.file.Bytes()), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var last time.Time
	got, err := Replay(reader, func(e *Entry, _ machine.Effect) error {
		last = e.Time
		return nil
	})
	if err != nil || got.Difference != "" || !last.Round(0).Before(before.Round(0)) || last.Sub(reader.Start) < time.Minute {
		t.Errorf("%+v, %v; the last is at %v, %v after the start", got, err, last, last.Sub(reader.Start))
	}
}

// secrets are in the clusters of secretClusters, and in the configuration.
var secrets = []string{"Bearer header-of-a-check", "query=of-a-path", hex.EncodeToString([]byte("payload-of-a-check")), "value-of-an-unknown-message", "header-of-a-rule"}

// keyPair returns a certificate and its private key, in PEM.
func keyPair(t testing.TB) (chain, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(7), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// packed returns a message as an Any.
func packed(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// secretClusters returns clusters with all kinds of secrets. hdsd checks all of their endpoints.
func secretClusters(t testing.TB) (clusters []*source.Cluster, key string) {
	chain, key := keyPair(t)
	text := func(s string) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: s}}
	}
	for i := range 3 {
		c := sample.WithPath(fmt.Sprintf("web-%d", i), "/ready?"+secrets[1], "10.0.0.1:80", "10.0.0.2:80")
		check := c.HealthChecks[0].GetHttpHealthCheck()
		check.RequestHeadersToAdd = []*corev3.HeaderValueOption{{Header: &corev3.HeaderValue{Key: "authorization", Value: secrets[0]}}}
		if i == 2 {
			check.RequestHeadersToAdd[0].Header.Value = "another" // for another shape
		}
		c.Config.TransportSocket = &corev3.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{
			TypedConfig: packed(t, &tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{{CertificateChain: text(chain), PrivateKey: text(key)}}}}),
		}}
		clusters = append(clusters, c)
	}
	tcp := sample.Web("tcp", "10.0.0.3:80")
	tcp.Config.HealthChecks[0].HealthChecker = &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{
		Send: &corev3.HealthCheck_Payload{Payload: &corev3.HealthCheck_Payload_Text{Text: secrets[2]}},
	}}
	unknown := sample.Web("odd", "10.0.0.4:80")
	unknown.Config.TypedExtensionProtocolOptions = map[string]*anypb.Any{"acme": {TypeUrl: "type.googleapis.com/acme.Secret", Value: []byte(secrets[3])}}
	assignment := unknown.Assignment.Message()
	assignment.Endpoints[0].LbEndpoints[0].Metadata = &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{"acme": {TypeUrl: "type.googleapis.com/acme.Secret", Value: []byte(secrets[3])}}}
	unknown.Assignment = source.EncodeAssignment(assignment)
	return append(clusters, tcp, unknown), key
}

// TestRecordingHasNoSecrets covers that secrets are absent, and that a replay does not need them.
func TestRecordingHasNoSecrets(t *testing.T) {
	clusters, key := secretClusters(t)
	c := config()
	c.DefaultHealthChecks = []*configv1.DefaultHealthChecks{{ClusterNameGlob: "none", HealthChecks: []*corev3.HealthCheck{{HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{
		HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{RequestHeadersToAdd: []*corev3.HeaderValueOption{{Header: &corev3.HeaderValue{Key: "token", Value: secrets[4]}}}},
	}}}}}
	c.Policies = []*configv1.Policy{{ClusterNameGlob: "tcp", Checkers: &configv1.CheckerSelector{Metadata: map[string]string{"vpc": "blue"}}}}
	r := newRun(t, time.Now(), &log.State{}, c)
	for _, cluster := range clusters {
		if k := catalog.Prepare(cluster, r.rules); len(k.Hashes) != len(k.Endpoints) {
			t.Fatalf("%s is not checked: %+v", cluster.Name, k.Exclusions())
		}
	}
	r.runFleet(clusters...)
	plain := decompress(t, r.file.Bytes())
	for _, secret := range append(strings.Split(key, "\n")[1:3], secrets...) {
		if bytes.Contains(plain, []byte(secret)) {
			t.Errorf("%q is in the recording", secret)
		}
	}
	for _, text := range []string{"authorization", "/ready?", "web-0", "acme.Secret", "10.0.0.1"} {
		if !bytes.Contains(plain, []byte(text)) {
			t.Errorf("%q is not in the recording", text)
		}
	}
	if got, err := replay(r.file.Bytes()); err != nil || got.Difference != "" || got.Decisions == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for range 2 {
		other := newRun(t, time.Now(), &log.State{}, c)
		other.runFleet(clusters...)
		if bytes.Equal(decompress(t, other.file.Bytes()), plain) {
			t.Error("two recordings hide secrets by the same key")
		}
	}
}

// decompress returns the stream of a recording.
func decompress(t testing.TB, file []byte) []byte {
	t.Helper()
	_, rest, _ := bytes.Cut(file, []byte("\n"))
	plain, err := io.ReadAll(flate.NewReader(&frames{file: bytes.NewReader(rest)}))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return plain
}

// TestHiderReplacesText covers that replacements differ, and keep the length and hexadecimal digits.
func TestHiderReplacesText(t *testing.T) {
	h := newHider([32]byte{1})
	for _, secret := range []string{"a-token-of-32-and-more-characters-is-longer-than-a-hash", "1234abcd", "odd"} {
		got, digits := h.text(secret, false), h.text(secret, true)
		_, secretErr := hex.DecodeString(secret)
		_, digitsErr := hex.DecodeString(digits)
		if len(got) != len(secret) || got == secret || got != h.text(secret, false) || h.text(secret+"x", false) == got+"x" || (secretErr == nil) != (digitsErr == nil) {
			t.Errorf("%q is %q, with digits %q", secret, got, digits)
		}
	}
	first, key := h.pair([]byte("a"))
	other, _ := h.pair([]byte("b"))
	if bytes.Equal(first, other) || len(key) == 0 {
		t.Error("two keys are replaced by one")
	}
}

// TestRecordingOfState covers that a Reader restores the recorded state.
func TestRecordingOfState(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	e := health.Endpoint{Cluster: "web", Locality: health.Locality{Region: "eu", Zone: "a", SubZone: "1"}, Address: "10.0.0.1:80"}
	state := &log.State{
		Current:  map[health.Hash]log.Health{e.Hash(): {Endpoint: e, Status: health.Healthy, Since: now, Reason: "why"}, 7: {}},
		Voted:    map[health.Hash]health.Verdict{7: {Status: health.Timeout, Since: now}},
		Plan:     map[string][]health.Hash{"a": {1, 2}, "b": {}},
		Clusters: []string{"pay", "web"}, Freeze: &log.Freeze{Reason: "why", Author: "ann", Since: now, Held: map[health.Hash]health.Status{7: health.Degraded}},
		Overrides: []log.Override{{Scope: e, Status: health.Draining, Reason: "why", Author: "ann", Since: now, Until: now.Add(1)}},
		Trust:     map[string]log.Trust{"a": {Level: log.Distrusted, Reason: "why", Author: "ann", Since: now}},
		Trials: map[string]*log.Trials{"1000000000": {
			Proven: []log.Proof{{Build: 5, Shape: 6}}, Blamed: []uint64{6, 8}, Losses: []log.Loss{{Checker: "a", Identity: "id", Time: now}}, Retries: 3,
		}},
		Established: map[string]log.Established{"a": {Identity: "id", Seen: now, StandIn: now, Founder: true}},
		Penalties:   map[health.Hash]log.Penalty{7: {Value: 1.5, At: now, Suppressed: true}},
		GivenBack:   map[string]bool{"web": true}, Attendance: log.Attendance{"a": {Locality: e.Locality, Lost: now}},
	}
	var file bytes.Buffer
	_, w, err := New(&file, &Header{Start: now}, state, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(&file, now)
	if err != nil {
		t.Fatal(err)
	}
	trials := state.Trials["1000000000"]
	shape := w.hider.number(6)
	if got := r.State.Trials["1000000000"]; got == nil || got.Proven[0].Shape != shape || !slices.Equal(got.Blamed, []uint64{shape, w.hider.number(8)}) || shape == 6 {
		t.Errorf("the trials are %+v", got)
	}
	trials.Proven[0].Shape, trials.Blamed = shape, r.State.Trials["1000000000"].Blamed
	if diff := cmp.Diff(state, r.State); diff != "" {
		t.Errorf("the state is different: %s", diff)
	}
}
