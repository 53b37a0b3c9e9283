package link

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/timestamppb"

	"hdsd/catalog"
	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/log/batch"
	entries "hdsd/log/sample"
	"hdsd/machine"
	"hdsd/replica"
	"hdsd/source/sample"
)

// victim is a replica that gets messages of a hostile one. It has a checker, and a log of its own.
type victim struct {
	t       *testing.T
	replica *replica.Replica
	now     time.Time
	head    uint64
	serial  uint64
	reports map[string]int // number of reports to each replica

	stuck    bool // its messages do not leave
	refusals int  // in the latest directions
}

func newVictim(t *testing.T) *victim {
	v := &victim{t: t, now: start, reports: map[string]int{}, replica: replica.New(replica.Options{
		ID: "b", Process: 7, Timing: machine.Timing{Report: time.Second, Grace: time.Second, Settle: time.Second}, MaxPayload: 1 << 20,
	}, log.State{TakenOver: map[string]bool{}}, 0)}
	v.step(replica.Begun{})
	v.step(replica.Local{Event: machine.Delivered{Delivery: catalog.Delivery{
		Rules: clusterRules, Changed: []catalog.Change{{Cluster: catalog.Prepare(sample.Web("web", "10.0.0.1:80", "10.0.0.2:80"), clusterRules)}},
		Answered: map[string]bool{"local": true}, Complete: true,
	}}})
	v.step(replica.Members{Replicas: []string{"a", "b"}, Leader: "a", Epoch: 3})
	v.step(replica.Local{Event: machine.Connected{Checker: *draw{rand.New(rand.NewPCG(1, 1))}.checker("0")}})
	v.step(replica.LinkOpened{Replica: "a", Link: 1})
	return v
}

// step handles an event, and what follows from it.
func (v *victim) step(e replica.Event) {
	for next := []replica.Event{e}; len(next) > 0; next = next[1:] {
		v.now = v.now.Add(10 * time.Millisecond)
		v.replica.Step(v.now, next[0], func(e replica.Effect) {
			switch e := e.(type) {
			case replica.Commit:
				v.head = e.Sequence
				next = append(next, replica.Committed{Epoch: e.Epoch, Sequence: e.Sequence}, replica.Read{Sequence: e.Sequence, Epoch: e.Epoch, Payload: e.Payload})
			case replica.Send:
				if _, err := encode(e.Message); err != nil {
					v.t.Errorf("its own message ends the link: %v", err)
				}
				switch m := e.Message.(type) {
				case replica.Report:
					v.reports[e.Replica]++
				case replica.Directions:
					v.refusals = len(m.Refusals)
				}
				if !v.stuck {
					next = append(next, replica.Sent{Replica: e.Replica, Link: e.Link})
				}
			case replica.Assigned:
				_, _ = e.Specifier.Encode()
				next = append(next, replica.Local{Event: machine.Followed{Checker: e.Checker, Specifier: e.Specifier}})
			case replica.Faulted:
				if !errors.Is(e.Err, errClosed) {
					v.t.Errorf("the log cannot be read any more: %v", e.Err)
				}
			}
		})
	}
}

// lead makes the victim the leader of an epoch.
func (v *victim) lead(epoch int64) {
	v.step(replica.Won{Epoch: epoch, Head: v.head})
	for range 100 { // it awaits the clusters of the other replica
		v.step(replica.Tick{})
		v.now = v.now.Add(100 * time.Millisecond)
	}
}

// TestHostileMessages lets a replica with a valid certificate send anything, to a leader and to a follower.
func TestHostileMessages(t *testing.T) {
	for seed := range uint64(300) {
		d := draw{rand.New(rand.NewPCG(seed, 2))}
		hostile(t, d.maybe(), func() (replica.Message, bool) { return d.message(), d.IntN(20) > 0 })
	}
}

// FuzzReplica has a replica handle messages with any content.
func FuzzReplica(f *testing.F) {
	for seed := range uint64(30) {
		d := draw{rand.New(rand.NewPCG(seed, 1))}
		f.Add(seed%2 == 0, carried(f, d.message()), carried(f, d.message()), carried(f, d.message()))
	}
	f.Fuzz(func(t *testing.T, leads bool, first, second, third []byte) {
		frames := [][]byte{first, second, third}
		hostile(t, leads, func() (m replica.Message, more bool) {
			for len(frames) > 0 && m == nil {
				m, _ = read(newDecoder(), frames[0])
				frames = frames[1:]
			}
			return m, m != nil
		})
	})
}

// hostile gives messages to a replica. Their terms are those that it has.
func hostile(t *testing.T, leads bool, next func() (replica.Message, bool)) {
	v := newVictim(t)
	term := replica.Term{Epoch: 3, Round: 1}
	if leads {
		v.lead(3)
	} else {
		v.step(replica.Received{Replica: "a", Link: 1, Message: replica.Welcome{Term: term}})
	}
	for m, more := next(); more; m, more = next() {
		switch e := m.(type) {
		case replica.Welcome:
			e.Term = term
			m = e
		case replica.Report:
			e.Term = term
			m = e
		case replica.Directions:
			e.Term = term
			for i := range e.Assignments {
				v.serial++
				a := &e.Assignments[i]
				a.Checker, a.Session, a.Serial = "0", 8, v.serial
			}
			m = e
		}
		v.step(replica.Received{Replica: "a", Link: 1, Message: m})
		v.step(replica.Tick{})
	}
	for range 5 {
		v.now = v.now.Add(time.Second)
		v.step(replica.Tick{})
	}
	v.lead(9)
	if v.replica.Machine() == nil {
		t.Error("it does not lead any more")
	}
}

// TestOnlyEtcdTellsWhoLeads covers replicas that claim to lead: they neither depose the leader nor take its place.
func TestOnlyEtcdTellsWhoLeads(t *testing.T) {
	claims := []replica.Message{
		replica.Welcome{Term: replica.Term{Epoch: math.MaxInt64}},
		replica.Report{Term: replica.Term{Epoch: math.MaxInt64}},
		replica.Directions{Term: replica.Term{Epoch: math.MaxInt64}},
		replica.Welcome{Term: replica.Term{Epoch: 3, Round: math.MaxUint64}},
	}
	for i, m := range claims {
		leader := newVictim(t)
		leader.step(replica.Members{Replicas: []string{"a", "b"}, Leader: "b", Epoch: 3})
		leader.lead(3)
		leader.step(replica.Received{Replica: "a", Link: 1, Message: m})
		if leader.replica.Machine() == nil {
			t.Errorf("claim %d deposes the leader", i)
		}
		leader.step(replica.Lost{Epoch: 3})
		if leader.lead(5); leader.replica.Machine() == nil {
			t.Errorf("after claim %d, the replica cannot lead any more", i)
		}

		follower := newVictim(t)
		follower.step(replica.LinkOpened{Replica: "c", Link: 2})
		follower.step(replica.Members{Replicas: []string{"a", "b", "c"}, Leader: "c", Epoch: 3})
		follower.step(replica.Received{Replica: "a", Link: 1, Message: m})
		follower.step(replica.Received{Replica: "c", Link: 2, Message: replica.Welcome{Term: replica.Term{Epoch: 3, Round: 1}}})
		if follower.reports["a"] > 0 || follower.reports["c"] == 0 {
			t.Errorf("after claim %d, the reports go to %v", i, follower.reports)
		}
	}
}

// TestAWelcomeMayBeEarly covers a leader that a replica hears of before etcd tells it.
func TestAWelcomeMayBeEarly(t *testing.T) {
	v := newVictim(t)
	v.step(replica.Received{Replica: "a", Link: 1, Message: replica.Welcome{Term: replica.Term{Epoch: 4, Round: 1}}})
	if v.reports["a"] > 0 {
		t.Error("it reports to a replica that does not lead yet")
	}
	if v.step(replica.Members{Replicas: []string{"a", "b"}, Leader: "a", Epoch: 4}); v.reports["a"] == 0 {
		t.Error("it does not report to the leader")
	}
}

// TestAWelcomeWaitsForTheLog covers a leader after a restore of etcd, whose epoch is an earlier one than those before.
func TestAWelcomeWaitsForTheLog(t *testing.T) {
	v := newVictim(t)
	v.step(replica.Received{Replica: "a", Link: 1, Message: replica.Welcome{Term: replica.Term{Epoch: 3, Round: 1}}})
	v.step(replica.LogEnded{Err: errClosed})
	v.step(replica.Members{Replicas: []string{"a", "b"}, Leader: "a", Epoch: 2})
	v.step(replica.Received{Replica: "a", Link: 1, Message: replica.Welcome{Term: replica.Term{Epoch: 2, Round: 1}}})
	before := v.reports["a"]
	if v.step(replica.LogResumed{}); v.reports["a"] == before {
		t.Error("it does not report to the leader")
	}
}

// TestHostileEntries covers a log with entries that no leader has decided. A replica follows them, and leads with their
// state.
func TestHostileEntries(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		v := newVictim(t)
		if seed%2 == 0 {
			v.lead(3)
		}
		web := []string{"10.0.0.1:80", "10.0.0.2:80"}
		for _, e := range entries.Entries(r, 30) {
			for i := range e.Transitions {
				e.Transitions[i].Endpoint = health.Endpoint{Cluster: "web", Address: web[r.IntN(2)]}
			}
			for i := range e.Overrides {
				e.Overrides[i].Override.Scope = health.Endpoint{Cluster: "web"}
			}
			for hash, p := range e.Penalties {
				if p != nil {
					e.Penalties[hash].Value = []float64{math.NaN(), math.Inf(1), -1, 1e308}[r.IntN(4)]
				}
			}
			encoded, err := batch.Encode([]*log.Entry{e})
			if err != nil {
				t.Fatal(err)
			}
			v.head++
			v.step(replica.Read{Sequence: v.head, Epoch: 3, Payload: batch.Frames(encoded, 1<<20)[0]})
			v.step(replica.Tick{})
		}
		v.lead(4)
		for range 5 {
			v.now = v.now.Add(time.Second)
			v.step(replica.Tick{})
		}
	}
}

// TestRefusalsAreBounded covers a replica that gives orders and reads no answers.
func TestRefusalsAreBounded(t *testing.T) {
	v := newVictim(t)
	v.lead(3)
	m := replica.Report{Term: replica.Term{Epoch: 3, Round: 1}, Full: true}
	v.step(replica.Received{Replica: "a", Link: 1, Message: m})
	v.stuck = true
	for number := range uint64(3 * maxOrders) {
		m.Orders = append(m.Orders, replica.Order{ID: log.OrderID{Process: 1, Number: number + 1}, Event: machine.Begun{}})
	}
	for range 4 { // the refusals of the first report leave
		v.step(replica.Received{Replica: "a", Link: 1, Message: m})
	}
	v.stuck = false
	if v.step(replica.Sent{Replica: "a", Link: 1}); v.refusals != maxOrders {
		t.Errorf("%d refusals wait", v.refusals)
	}
}

// TestImpossibleReports covers reports that would make answers of all replicas impossible.
func TestImpossibleReports(t *testing.T) {
	order := func(o *replicav1.Order) *replicav1.Report { return &replicav1.Report{Orders: []*replicav1.Order{o}} }
	annotate := func(e *replicav1.Event) *replicav1.Report {
		return order(&replicav1.Order{Order: &replicav1.Order_Annotate{Annotate: e}})
	}
	node := &replicav1.Checker{Locality: &replicav1.Locality{Zone: "\xff"}}
	for want, r := range map[string]*replicav1.Report{
		"session 0 of a report: \"\\xff\" is not UTF-8": {Sessions: []*replicav1.Session{{Checker: "\xff"}}},
		"session 0 of a report: \"\\xff\" is":           {Sessions: []*replicav1.Session{{Checker: "a", Node: node}}},
		"1025 orders":                                   {Orders: make([]*replicav1.Order, 1025)},
		"order 0 of a report: \"\\xfe\"":                order(&replicav1.Order{Order: &replicav1.Order_Freeze{Freeze: &replicav1.Freeze{Reason: "\xfe"}}}),
		"the clusters of a report: \"\\xfd\"":           {Clusters: &replicav1.Clusters{Changed: []*replicav1.Cluster{{Name: "\xfd"}}}},
		"of another process":                            order(&replicav1.Order{Id: &replicav1.OrderId{Process: 1}}),
		"an event of kind 256":                          annotate(&replicav1.Event{Kind: 256}),
		"an event of kind -1":                           annotate(&replicav1.Event{Kind: -1}),
		"9999-12-31":                                    annotate(&replicav1.Event{Time: &timestamppb.Timestamp{Seconds: 1 << 40}}),
	} {
		if err := checkReport(r, 0); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "\u00a0", " "), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := checkReport(&replicav1.Report{Sessions: []*replicav1.Session{{Checker: "ä"}}, Orders: []*replicav1.Order{{Id: &replicav1.OrderId{Process: 7}}}}, 7); err != nil {
		t.Error(err)
	}
	long := checkReport(&replicav1.Report{Sessions: []*replicav1.Session{{Checker: strings.Repeat("\xff", 1<<20)}}}, 0)
	if long == nil || len(long.Error()) > 2000 {
		t.Errorf("an error of %d bytes", len(fmt.Sprint(long)))
	}
	if err := checkReport(nil, 7); err != nil {
		t.Error(err)
	}
}

// TestAnImpossibleReportEndsItsLink covers one that arrives.
func TestAnImpossibleReportEndsItsLink(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, _ := pair(t)
		a.send("b", replica.Report{Sessions: []replica.Session{{Checker: "\xff"}}})
		a.fails("b", "is not UTF-8")
	})
}

// TestTooManyFields covers a message of few bytes that would take gigabytes: nothing is decoded.
func TestTooManyFields(t *testing.T) {
	report := bytes.Repeat([]byte{3<<3 | 2, 0}, maxFields) // empty sessions
	frame := protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), report)
	f := new(replicav1.Frame)
	err := boundedCodec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(frame)}, f)
	if err == nil || !strings.Contains(err.Error(), "more than") || f.Message != nil {
		t.Errorf("%v, and the message is decoded: %v", err, f.Message != nil)
	}
	frame = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), make([]byte, 3*maxFields)))
	if err := boundedCodec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(frame)}, f); err != nil || len(f.GetHello().GetId()) != 3*maxFields {
		t.Errorf("a large message with few fields: %v", err)
	}
}
