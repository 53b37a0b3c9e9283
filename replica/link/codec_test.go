package link

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"hdsd/envoy/specifier"
	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/replica"
	"hdsd/replica/clusters"
	"hdsd/ruling"
	"hdsd/source"
	"hdsd/source/sample"
)

var start = time.Date(2026, 11, 29, 8, 0, 0, 5, time.UTC)

// same compares messages. Errors are the same if their types and texts are, and no list equals an empty one.
var same = cmp.Options{
	protocmp.Transform(), cmpopts.EquateEmpty(),
	cmpopts.IgnoreUnexported(source.Cluster{}), cmp.Comparer(func(a, b *source.Assignment) bool { return a.Equal(b) }),
	cmp.Comparer(func(a, b error) bool { return fmt.Sprintf("%T %v", a, a) == fmt.Sprintf("%T %v", b, b) }),
}

// carried returns the bytes of a message.
func carried(t testing.TB, m replica.Message) []byte {
	t.Helper()
	f, err := encode(m)
	if err != nil {
		t.Fatal(err)
	}
	b, err := proto.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// read returns the message of some bytes.
func read(d *decoder, b []byte) (replica.Message, error) {
	f := new(replicav1.Frame)
	if err := proto.Unmarshal(b, f); err != nil {
		return nil, err
	}
	return d.decode(f)
}

func comesBack(t testing.TB, m replica.Message) {
	t.Helper()
	got, err := read(newDecoder(), carried(t, m))
	if err != nil {
		t.Fatalf("%+v: %v", m, err)
	}
	if diff := cmp.Diff(m, got, same); diff != "" {
		t.Fatalf("(-sent +received)\n%s", diff)
	}
}

// draw draws parts of messages.
type draw struct{ *rand.Rand }

func (d draw) maybe() bool { return d.IntN(2) == 0 }

// name returns a name, which need not be UTF-8.
func (d draw) name() string {
	return []string{"web", "pay", "\xff\x00", "ä", "checker-1", "checker-2"}[d.IntN(6)]
}

func (d draw) text() string {
	if d.maybe() {
		return ""
	}
	return d.name()
}

func (d draw) locality() health.Locality {
	return health.Locality{Region: d.text(), Zone: d.text(), SubZone: d.text()}
}

func (d draw) scope() health.Endpoint {
	return health.Endpoint{Cluster: d.text(), Locality: d.locality(), Address: d.text()}
}

func (d draw) time() time.Time {
	if d.maybe() {
		return time.Time{}
	}
	return start.Add(time.Duration(d.Int64N(1 << 50)))
}

func (d draw) status() health.Status { return health.Status(d.IntN(6)) }

func (d draw) hashes(n int) []health.Hash {
	hashes := make([]health.Hash, n)
	for i := range hashes {
		hashes[i] = health.Hash(d.Uint64())
	}
	return hashes
}

func (d draw) term() replica.Term {
	return replica.Term{Epoch: d.Int64() - d.Int64(), Round: d.Uint64N(9)}
}

func (d draw) orderID() log.OrderID { return log.OrderID{Process: d.Uint64(), Number: d.Uint64N(9)} }

// clusters returns clusters, some with their content.
func (d draw) clusters() *clusters.Update {
	u := &clusters.Update{Begin: d.maybe(), End: d.maybe(), Complete: d.maybe()}
	for i := range d.IntN(4) {
		l := clusters.Listing{Name: fmt.Sprint(i, d.name()), Digest: clusters.Digest(d.Uint64())}
		if d.maybe() {
			c := sample.WithPath("web", fmt.Sprint("/", d.IntN(3)), "10.0.0.1:80", fmt.Sprintf("10.0.0.%d:80", 2+d.IntN(9)))
			c.Name, c.Source, c.ServiceName, c.AssignmentSource, c.Names = l.Name, d.text(), d.name(), d.text(), d.text()
			c.Stale, c.IgnoreNew = d.maybe(), d.maybe()
			if d.maybe() {
				c.Assignment = nil
			} else if d.maybe() {
				c.Config, c.Lone = nil, true
			}
			l.Cluster = c
		}
		u.Changed = append(u.Changed, l)
		u.Removed = append(u.Removed, d.name())
		u.Answered = append(u.Answered, d.name())
	}
	return u
}

// message returns a random message.
func (d draw) message() replica.Message {
	switch d.IntN(3) {
	case 0:
		return replica.Welcome{Term: d.term(), Head: d.Uint64()}
	case 1:
		m := replica.Report{Term: d.term(), Full: d.maybe()}
		for i := range d.IntN(4) {
			m.Sessions = append(m.Sessions, d.session(fmt.Sprint(i, d.text())))
		}
		for range d.IntN(4) {
			m.Orders = append(m.Orders, replica.Order{ID: d.orderID(), Event: d.order(), Operator: d.operator()})
		}
		if d.maybe() {
			m.Clusters = d.clusters()
		}
		return m
	}
	m := replica.Directions{Term: d.term()}
	for range d.IntN(4) {
		m.Assignments = append(m.Assignments, d.assignment())
	}
	for range d.IntN(4) {
		m.Resend = append(m.Resend, d.name())
		m.Wanted = append(m.Wanted, d.name())
	}
	for range d.IntN(4) {
		m.Refusals = append(m.Refusals, replica.Refusal{ID: d.orderID(), Err: d.refusal()})
	}
	return m
}

func (d draw) session(checker string) replica.Session {
	s := replica.Session{
		Checker: checker, Number: d.Uint64(), Connected: d.maybe(), Lost: d.maybe(), Ended: d.maybe(), Silent: d.maybe(), Heard: d.maybe(),
		Assigned: d.Uint64N(300), Followed: d.Uint64N(300),
	}
	if d.maybe() {
		s.Node = d.checker(checker)
	}
	for range d.IntN(9) {
		s.Votes = append(s.Votes, replica.Vote{Endpoint: health.Hash(d.Uint64()), Status: d.status(), HTTPStatusCode: uint16(d.IntN(1 << 16))})
	}
	return s
}

func (d draw) checker(id string) *health.Checker {
	c := &health.Checker{ID: id, Locality: d.locality(), Version: d.text(), Identity: d.text(), Weight: d.Float64(), MaxChecksPerSecond: d.Float64() * 1e300}
	for range d.IntN(3) {
		if c.Abilities == nil {
			c.Abilities, c.Metadata = health.Abilities{}, map[string]string{}
		}
		c.Abilities[health.Ability(d.name())] = struct{}{}
		c.Metadata[d.text()] = d.text()
	}
	return c
}

func (d draw) order() machine.Event {
	switch d.IntN(7) {
	case 0:
		return &machine.SetOverride{Override: log.Override{
			Scope: d.scope(), Status: d.status(), Reason: d.text(), Author: d.text(), Since: d.time(), Until: d.time(),
		}}
	case 1:
		return &machine.ClearOverrides{Scope: d.scope(), All: d.maybe(), Author: d.text()}
	case 2:
		return &machine.Freeze{Author: d.text(), Reason: d.text(), Hold: d.maybe()}
	case 3:
		return &machine.Unfreeze{Author: d.text()}
	case 4:
		trust := log.Trust{Level: log.TrustLevel(d.IntN(3)), Reason: d.text(), Author: d.text(), Since: d.time()}
		return &machine.SetTrust{Checker: d.text(), Trust: trust}
	case 5:
		return &machine.Annotate{Event: log.Event{
			Time: d.time(), Kind: log.EventKind(d.Int32() - d.Int32()), Cluster: d.text(), Address: d.text(), Checker: d.text(), Locality: d.locality(),
			Author: d.text(), Identity: d.text(), Text: d.text(), Whole: d.maybe(),
		}}
	}
	return &machine.ClearTrust{Checker: d.text(), Author: d.text()}
}

// operator returns the operator of an order, or nil.
func (d draw) operator() *log.Operator {
	if d.maybe() {
		return nil
	}
	return &log.Operator{Identity: d.text(), Address: d.text(), Time: d.time()}
}

func (d draw) refusal() error {
	switch d.IntN(3) {
	case 0:
		return &ruling.Refusal{NotFound: d.maybe(), UnknownCluster: d.maybe(), Text: d.text()}
	case 1:
		return machine.ErrTrustFull
	}
	return errors.New(d.text())
}

func (d draw) assignment() replica.Assignment {
	serial := d.Uint64()
	s := &specifier.Specifier{Interval: 1 + time.Duration(d.Int64N(1<<40)), Retell: d.maybe(), Serial: serial}
	for i := range d.IntN(4) {
		part := specifier.Part{Head: head(fmt.Sprint("cluster-", i), "/healthz")}
		for range d.IntN(4) {
			g := specifier.Group{Entries: d.IntN(4)}
			if d.maybe() {
				g.Locality = &corev3.Locality{Region: "eu", Zone: fmt.Sprint(d.IntN(3))}
			}
			part.Localities = append(part.Localities, g)
			for range g.Entries {
				entry := len(s.Addresses)
				s.Addresses = append(s.Addresses, fmt.Sprintf("10.0.0.%d:80", entry))
				if d.maybe() {
					if s.Special == nil {
						s.Special = map[int]*endpointv3.Endpoint{}
					}
					s.Special[entry] = &endpointv3.Endpoint{Hostname: fmt.Sprint(entry)}
				}
			}
		}
		s.Clusters = append(s.Clusters, part)
	}
	return replica.Assignment{Checker: d.name(), Session: d.Uint64(), Serial: serial, Specifier: s, Endpoints: d.hashes(len(s.Addresses))}
}

// head returns a cluster without localities.
func head(name, path string) *healthv3.ClusterHealthCheck {
	return &healthv3.ClusterHealthCheck{ClusterName: name, HealthChecks: []*corev3.HealthCheck{{
		Timeout: durationpb.New(time.Second), Interval: durationpb.New(time.Second),
		HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: path}},
	}}}
}

func TestMessagesComeBack(t *testing.T) {
	for seed := range uint64(1000) {
		comesBack(t, draw{rand.New(rand.NewPCG(seed, 1))}.message())
	}
}

func TestExtremeMessagesComeBack(t *testing.T) {
	far := time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	for _, m := range []replica.Message{
		replica.Welcome{}, replica.Report{}, replica.Directions{},
		replica.Report{Sessions: []replica.Session{{Checker: "a", Votes: []replica.Vote{{Endpoint: 1<<64 - 1, Status: health.Degraded, HTTPStatusCode: 1<<16 - 1}}}}},
		replica.Report{Sessions: []replica.Session{{Checker: "a", Node: &health.Checker{ID: "a"}}}},
		replica.Report{Orders: []replica.Order{{Event: &machine.SetOverride{Override: log.Override{Since: far, Until: far}}}}},
		replica.Report{Orders: []replica.Order{{Event: &machine.SetOverride{Override: log.Override{Since: time.Unix(-1<<35, 3).UTC()}}}}},
		replica.Directions{Assignments: []replica.Assignment{{Checker: "a", Specifier: &specifier.Specifier{Interval: time.Second}}}},
		replica.Directions{Assignments: []replica.Assignment{{Checker: "a", Endpoints: []health.Hash{1}, Specifier: &specifier.Specifier{
			Interval: 1, Addresses: []string{"@\xff"}, Clusters: []specifier.Part{{Head: head("a", "/"), Localities: []specifier.Group{{Locality: &corev3.Locality{}}, {Entries: 1}}}},
		}}}},
	} {
		comesBack(t, m)
	}
}

// An order's result belongs to the machine of the leader.
func TestOrdersCarryWhatIsAskedForOnly(t *testing.T) {
	orders := []replica.Order{
		{Event: &machine.SetOverride{Err: errors.New("refused"), Replaced: &ruling.Override{}}},
		{Event: &machine.Freeze{After: &log.Freeze{}}},
		{Event: &machine.ClearTrust{Checker: "a", Changed: true}},
	}
	got, err := read(newDecoder(), carried(t, replica.Report{Orders: orders}))
	want := replica.Report{Orders: []replica.Order{{Event: &machine.SetOverride{}}, {Event: &machine.Freeze{}}, {Event: &machine.ClearTrust{Checker: "a"}}}}
	if diff := cmp.Diff(replica.Message(want), got, same); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
}

func TestRefusalsKeepTheirKinds(t *testing.T) {
	got, err := read(newDecoder(), carried(t, replica.Directions{Refusals: []replica.Refusal{
		{Err: fmt.Errorf("wrapped: %w", &ruling.Refusal{NotFound: true, UnknownCluster: true, Text: `unknown cluster "a"`})},
		{Err: fmt.Errorf("wrapped: %w", machine.ErrTrustFull)},
		{Err: errors.New("another")},
	}}))
	if err != nil {
		t.Fatal(err)
	}
	refusals := got.(replica.Directions).Refusals
	var impossible *ruling.Refusal
	if !errors.As(refusals[0].Err, &impossible) || *impossible != (ruling.Refusal{NotFound: true, UnknownCluster: true, Text: `unknown cluster "a"`}) {
		t.Errorf("an impossible order: %#v", refusals[0].Err)
	}
	if !errors.Is(refusals[1].Err, machine.ErrTrustFull) {
		t.Errorf("trust in too many checkers: %#v", refusals[1].Err)
	}
	if refusals[2].Err.Error() != "another" {
		t.Errorf("another error: %v", refusals[2].Err)
	}
}

func TestWhatCannotBeEncoded(t *testing.T) {
	for want, m := range map[string]replica.Message{
		"no message": nil,
		"no order":   replica.Report{Orders: []replica.Order{{Event: machine.Begun{}}}},
		"UTF-8": replica.Directions{Assignments: []replica.Assignment{{Specifier: &specifier.Specifier{
			Clusters: []specifier.Part{{Head: &healthv3.ClusterHealthCheck{ClusterName: "\xff"}}},
		}}}},
	} {
		if _, err := encode(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestWhatCannotBeDecoded covers what no release sends, and what a later one may.
func TestWhatCannotBeDecoded(t *testing.T) {
	term, id, scope := &replicav1.Term{Epoch: 1}, &replicav1.OrderId{Number: 1}, &replicav1.Scope{}
	session := func(s *replicav1.Session) *replicav1.Report {
		return &replicav1.Report{Term: term, Sessions: []*replicav1.Session{s}}
	}
	order := func(o *replicav1.Order) *replicav1.Report {
		return &replicav1.Report{Term: term, Orders: []*replicav1.Order{o}}
	}
	override := func(o *replicav1.Override) *replicav1.Report {
		return order(&replicav1.Order{Id: id, Order: &replicav1.Order_SetOverride{SetOverride: o}})
	}
	trust := func(s *replicav1.SetTrust) *replicav1.Report {
		return order(&replicav1.Order{Id: id, Order: &replicav1.Order_SetTrust{SetTrust: s}})
	}
	reports := map[string]*replicav1.Report{
		"no term":                    {},
		"no checker":                 session(&replicav1.Session{}),
		"2 endpoints with 1 votes":   session(&replicav1.Session{Checker: "a", Endpoints: []uint64{1, 2}, Votes: []uint32{1}}),
		"0 endpoints with 1 votes":   session(&replicav1.Session{Checker: "a", Votes: []uint32{1}}),
		"vote 0x6":                   session(&replicav1.Session{Checker: "a", Endpoints: []uint64{1}, Votes: []uint32{6}}),
		"vote 0x100001":              session(&replicav1.Session{Checker: "a", Endpoints: []uint64{1}, Votes: []uint32{1<<20 | 1}}),
		"weight -1":                  session(&replicav1.Session{Checker: "a", Node: &replicav1.Checker{Weight: -1}}),
		"order of checkers":          {Term: term, Sessions: []*replicav1.Session{{Checker: "a"}, {Checker: "a"}}},
		"no id":                      order(&replicav1.Order{}),
		"no order that this release": order(&replicav1.Order{Id: id}),
		"no scope":                   override(&replicav1.Override{}),
		"the status 6":               override(&replicav1.Override{Scope: scope, Status: 6}),
		"the status 257":             override(&replicav1.Override{Scope: scope, Status: 257}),
		"the status -1":              override(&replicav1.Override{Scope: scope, Status: -1}),
		"1000000000 nanoseconds":     override(&replicav1.Override{Scope: scope, Until: &timestamppb.Timestamp{Nanos: 1e9}}),
		"-1 nanoseconds":             trust(&replicav1.SetTrust{Since: &timestamppb.Timestamp{Nanos: -1}}),
		"level 3":                    trust(&replicav1.SetTrust{Level: 3}),
		"level -1":                   trust(&replicav1.SetTrust{Level: -1}),
		"1000000001 nanoseconds":     order(&replicav1.Order{Id: id, Order: &replicav1.Order_Annotate{Annotate: &replicav1.Event{Time: &timestamppb.Timestamp{Nanos: 1e9 + 1}}}}),
		"1000000002 nanoseconds": order(&replicav1.Order{
			Id: id, Order: &replicav1.Order_Unfreeze{Unfreeze: &replicav1.Unfreeze{}}, Operator: &replicav1.Operator{Time: &timestamppb.Timestamp{Nanos: 1e9 + 2}},
		}),
	}
	frames := map[string]*replicav1.Frame{
		"a frame without": {}, "a second hello": {Message: &replicav1.Frame_Hello{}}, "term": {Message: &replicav1.Frame_Welcome{Welcome: &replicav1.Welcome{}}},
	}
	for want, r := range reports {
		frames[want] = &replicav1.Frame{Message: &replicav1.Frame_Report{Report: r}}
	}
	checks, err := proto.Marshal(head("web", "/"))
	if err != nil {
		t.Fatal(err)
	}
	assigned := func(endpoints []uint64, s *replicav1.Specifier) *replicav1.Directions {
		return &replicav1.Directions{Term: term, Assignments: []*replicav1.Assignment{{Checker: "a", Specifier: s, Endpoints: endpoints}}}
	}
	part := func(entries uint32) *replicav1.Part {
		return &replicav1.Part{Head: checks, Localities: []*replicav1.Group{{Entries: entries}}}
	}
	parts := func(p ...*replicav1.Part) []*replicav1.Part { return p }
	for want, d := range map[string]*replicav1.Directions{
		"term":                        {},
		"checker":                     {Term: term, Assignments: []*replicav1.Assignment{{Specifier: &replicav1.Specifier{Interval: 1}}}},
		"no specifier":                assigned(nil, nil),
		"reports every 0s":            assigned(nil, &replicav1.Specifier{}),
		"reports every -1ns":          assigned(nil, &replicav1.Specifier{Interval: -1}),
		"0 entries with 1 addresses":  assigned([]uint64{1}, &replicav1.Specifier{Interval: 1, Addresses: []string{"a"}}),
		"2 entries with 1 addresses":  assigned([]uint64{1}, &replicav1.Specifier{Interval: 1, Addresses: []string{"a"}, Clusters: parts(part(1), part(1))}),
		"1 endpoints with 0 address":  assigned([]uint64{1}, &replicav1.Specifier{Interval: 1}),
		"0 endpoints with 1 address":  assigned(nil, &replicav1.Specifier{Interval: 1, Addresses: []string{"a"}, Clusters: parts(part(1))}),
		"4294967295 entries":          assigned(nil, &replicav1.Specifier{Interval: 1, Clusters: parts(part(1<<32 - 1))}),
		"no health check":             assigned(nil, &replicav1.Specifier{Interval: 1, Clusters: parts(&replicav1.Part{})}),
		"cluster 0: proto":            assigned(nil, &replicav1.Specifier{Interval: 1, Clusters: parts(&replicav1.Part{Head: []byte{1}})}),
		"an endpoint for entry 0":     assigned(nil, &replicav1.Specifier{Interval: 1, Special: map[uint32][]byte{0: nil}}),
		"the endpoint of entry 0: pr": assigned([]uint64{1}, &replicav1.Specifier{Interval: 1, Addresses: []string{"a"}, Clusters: parts(part(1)), Special: map[uint32][]byte{0: {1}}}),
		"refusal 0: no id":            {Term: term, Refusals: []*replicav1.Refusal{{}}},
		"a refusal of kind 3":         {Term: term, Refusals: []*replicav1.Refusal{{Id: id, Kind: 3}}},
	} {
		frames[want] = &replicav1.Frame{Message: &replicav1.Frame_Directions{Directions: d}}
	}
	for want, f := range frames {
		b, err := proto.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := read(newDecoder(), b); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "\u00a0", " "), want) {
			t.Errorf("%+v, %v: want %q", m, err, want)
		}
	}
}

func TestFieldsOfALaterReleaseAreIgnored(t *testing.T) {
	later := protowire.AppendBytes(protowire.AppendTag(nil, 999, protowire.BytesType), []byte("later"))
	for _, m := range []replica.Message{
		replica.Report{Sessions: []replica.Session{{Checker: "a", Node: &health.Checker{ID: "a"}}}, Orders: []replica.Order{{Event: &machine.Unfreeze{}}}},
		replica.Directions{Assignments: []replica.Assignment{{Checker: "a", Specifier: &specifier.Specifier{Interval: 1}}}},
	} {
		f, err := encode(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []proto.Message{
			f, f.GetReport(), f.GetDirections(), f.GetReport().GetTerm(), slices.Concat(f.GetReport().GetSessions(), []*replicav1.Session{{}})[0],
			slices.Concat(f.GetReport().GetOrders(), []*replicav1.Order{{}})[0], slices.Concat(f.GetDirections().GetAssignments(), []*replicav1.Assignment{{}})[0],
		} {
			if r := part.ProtoReflect(); r.IsValid() {
				r.SetUnknown(later)
			}
		}
		b, err := proto.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(newDecoder(), b)
		if diff := cmp.Diff(m, got, same); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
	}
}

// TestEqualPartsAreOne as long as they are in use.
func TestEqualPartsAreOne(t *testing.T) {
	assigned := replica.Assignment{Checker: "a", Specifier: &specifier.Specifier{Interval: 1, Clusters: []specifier.Part{
		{Head: head("web", "/"), Localities: []specifier.Group{{Locality: &corev3.Locality{Zone: "a"}}}},
	}}}
	b, d := carried(t, replica.Directions{Assignments: []replica.Assignment{assigned}}), newDecoder()
	var parts [2]specifier.Part
	for i := range parts {
		m, err := read(d, b)
		if err != nil {
			t.Fatal(err)
		}
		parts[i] = m.(replica.Directions).Assignments[0].Specifier.Clusters[0]
	}
	if parts[0].Head != parts[1].Head || parts[0].Localities[0].Locality != parts[1].Localities[0].Locality {
		t.Error("equal parts are several")
	}
	size := func() int {
		d.heads.mu.Lock()
		defer d.heads.mu.Unlock()
		return len(d.heads.messages)
	}
	if runtime.GC(); size() != 1 {
		t.Errorf("%d parts are known while one is in use", size())
	}
	runtime.KeepAlive(&parts)
	for range 1000 {
		if runtime.GC(); size() == 0 {
			return
		}
		runtime.Gosched() // cleanups have a goroutine of their own
	}
	t.Errorf("%d parts are known, and none is in use", size())
}

// FuzzDecode: any bytes are an error or a message that comes back.
func FuzzDecode(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(carried(f, draw{rand.New(rand.NewPCG(seed, 1))}.message()))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := read(newDecoder(), b)
		if err != nil {
			return
		}
		comesBack(t, m)
	})
}

// largeReport returns a report of many checkers with many votes.
func largeReport(checkers, votes int) replica.Report {
	d := draw{rand.New(rand.NewPCG(1, 1))}
	m := replica.Report{Full: true}
	for i := range checkers {
		id := fmt.Sprintf("checker-%06d", i)
		m.Sessions = append(m.Sessions, replica.Session{Checker: id, Number: d.Uint64(), Connected: true, Heard: true, Assigned: 1, Followed: 1, Node: &health.Checker{
			ID: id, Version: "envoy/1.40.0", Locality: health.Locality{Region: "region-1", Zone: "zone-1"}, Metadata: map[string]string{"vpc": "blue"},
			Abilities: health.Abilities{health.HTTP: {}, health.TCP: {}, health.GRPC: {}, health.FreshCodes: {}},
		}})
	}
	for i := range votes {
		s := &m.Sessions[i%checkers]
		s.Votes = append(s.Votes, replica.Vote{Endpoint: health.Hash(d.Uint64()), Status: health.Unhealthy, HTTPStatusCode: 503})
	}
	return m
}

// largeAssignment returns an assignment of endpoints in clusters of a hundred.
func largeAssignment(checker string, endpoints int) replica.Assignment {
	d := draw{rand.New(rand.NewPCG(1, 1))}
	s := &specifier.Specifier{Interval: time.Second, Serial: 7}
	for i := range endpoints {
		if i%100 == 0 {
			s.Clusters = append(s.Clusters, specifier.Part{Head: head(fmt.Sprint("cluster-", i), "/healthz"), Localities: []specifier.Group{
				{Locality: &corev3.Locality{Region: "eu", Zone: "a"}, Entries: min(100, endpoints-i)},
			}})
		}
		s.Addresses = append(s.Addresses, fmt.Sprintf("10.%d.%d.%d:8080", i>>16&255, i>>8&255, i&255))
	}
	return replica.Assignment{Checker: checker, Session: 1, Serial: 7, Specifier: s, Endpoints: d.hashes(endpoints)}
}

func BenchmarkReport(b *testing.B) { benchmark(b, largeReport(1000, 65_536)) }

func BenchmarkDirections(b *testing.B) {
	benchmark(b, replica.Directions{Assignments: []replica.Assignment{largeAssignment("checker", 10_000)}})
}

func benchmark(b *testing.B, m replica.Message) {
	content, d := carried(b, m), newDecoder()
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			carried(b, m)
		}
		b.ReportMetric(float64(len(content)), "B")
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := read(d, content); err != nil {
				b.Fatal(err)
			}
		}
	})
}
