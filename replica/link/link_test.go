package link

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"

	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/replica"
)

func TestMessagesGoBothWays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := pair(t)
		for range 3 {
			a.send("b", replica.Welcome{Head: 7})
			a.expect("sent b")
			b.expect("welcome a")
			b.send("a", replica.Report{Full: true})
			b.expect("sent a")
			a.expect("report b")
		}
		a.Send(replica.Send{Replica: "b", Link: a.link("b") - 1, Message: replica.Welcome{}})
		a.Send(replica.Send{Replica: "c", Link: a.link("b"), Message: replica.Welcome{}})
		a.expect() // links that there are not
		b.expect()
		if s := a.Status()["b"]; !s.Connected || s.Version != "1.0" || s.Err != "" || !s.Since.Equal(time.Now()) {
			t.Errorf("the status of an open link is %+v", s)
		}
		a.stop()
		a.expect("closed b")
		b.expect("closed a")
		b.fails("a", "ended the link")
		a.stop()
		if a.SetMembers(map[string]string{"b": "b"}); len(a.Status()) != 1 {
			t.Errorf("after the end: %v", a.Status())
		}
		a.expect()
	})
}

// TestTheLargestMessagesFit covers what package replica may send at most, and more.
func TestTheLargestMessagesFit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := pair(t)
		report := largeReport(40_000, 65_536)
		if size := len(carried(t, report)); size < 4<<20 {
			t.Fatalf("the report has %d bytes", size)
		}
		a.send("b", report)
		a.expect("sent b")
		b.expect("report a")
		d := replica.Directions{}
		for i := range 20 {
			d.Assignments = append(d.Assignments, largeAssignment(fmt.Sprint("checker-", i), 10_000))
		}
		if size := len(carried(t, d)); size < 4<<20 {
			t.Fatalf("the directions have %d bytes", size)
		}
		b.send("a", d)
		b.expect("sent a")
		a.expect("directions b")
	})
}

func TestTheReplicaWithTheSmallerIDCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b, c := n.run("a", "a"), n.run("b", "b"), n.run("c", "c")
		meet(a, b, c)
		for _, p := range []*node{a, b, c} {
			if got := texts(p.take()); len(got) != 2 {
				t.Errorf("%s got %q", p.id, got)
			}
		}
		if len(n.wires) != 3 {
			t.Errorf("three replicas have %d connections", len(n.wires))
		}
	})
}

func TestHellos(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork(t)
		b := n.run("b", "b")
		b.SetMembers(map[string]string{"a": "a"})
		other := greeting("a", "b", 1)
		other.GetHello().OldestProtocol, other.GetHello().Protocol = 9, 12
		older := greeting("a", "b", 1)
		older.GetHello().OldestProtocol, older.GetHello().Protocol = 0, 0
		for want, first := range map[string]*replicav1.Frame{
			"InvalidArgument: replica b awaits the hello":                                      {},
			"FailedPrecondition: the address of replica c leads to replica b: set":             greeting("a", "c", 1),
			"FailedPrecondition: the address of replica b leads to replica b itself: set":      greeting("b", "b", b.options.Process),
			"FailedPrecondition: two replicas have the id b":                                   greeting("b", "b", b.options.Process+1),
			"FailedPrecondition: replica b calls replica c":                                    greeting("c", "b", 1),
			"replica a (version 0.9) those from 9 to 12: upgrade the older":                    other,
			"replica b (version 1.0) speaks the protocols 1 to 1 of replicas, and replica a (": older,
		} {
			n.refused(n.raw("b", first), want)
		}
		b.expect()
	})
}

// TestALaterReleaseSpeaksAnEarlierProtocol so that releases are upgraded one replica after the other.
func TestALaterReleaseSpeaksAnEarlierProtocol(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork(t)
		b := n.run("b", "b")
		b.SetMembers(map[string]string{"a": "a"})
		later := greeting("a", "b", 1)
		later.GetHello().Protocol = protocol + 1
		if f, err := n.raw("b", later).Recv(); err != nil || f.GetHello().GetProtocol() != protocol {
			t.Fatal(f, err)
		}
		b.expect("opened a")
	})
}

func TestAHelloMustCome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork(t)
		b := n.run("b", "b")
		n.refused(n.raw("b"), "DeadlineExceeded: replica b awaits the hello of a replica within 5s")
		n.raw("b")
		synctest.Wait()
		began := time.Now()
		b.stop()
		if took := time.Since(began); took > 0 {
			t.Errorf("the end waits %v for a hello", took)
		}
		b.expect()
	})
}

// answer is a server that answers each call in its way.
type answer struct {
	replicav1.UnimplementedLinksServer
	link func(replicav1.Links_LinkServer) error
}

func (a *answer) Link(s replicav1.Links_LinkServer) error { return a.link(s) }

func TestAnswersToACall(t *testing.T) {
	other := greeting("b", "", 1)
	other.GetHello().OldestProtocol, other.GetHello().Protocol = 9, 12
	answering := func(f *replicav1.Frame) func(replicav1.Links_LinkServer) error {
		return func(s replicav1.Links_LinkServer) error { return s.Send(f) }
	}
	for want, link := range map[string]func(replicav1.Links_LinkServer) error{
		"b is not replica b but replica c: set replication.peer.advertise": answering(greeting("c", "", 1)),
		"upgrade the older":                       answering(other),
		"awaits the hello of a replica":           answering(&replicav1.Frame{}),
		"accepts the call and does not answer it": func(s replicav1.Links_LinkServer) error { <-s.Context().Done(); return nil },
	} {
		bubble(t, func(t *testing.T) {
			n := newNetwork(t)
			n.serve("b", func(r grpc.ServiceRegistrar) { replicav1.RegisterLinksServer(r, &answer{link: link}) })
			a := n.run("a", "a")
			a.SetMembers(map[string]string{"b": "b"})
			time.Sleep(connectPatience + helloPatience)
			a.fails("b", want)
			a.expect()
		})
	}
}

func TestAReplicaThatIsNotThere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork(t)
		a := n.run("a", "a")
		a.SetMembers(map[string]string{"b": "nowhere"})
		a.fails("b", "nobody listens on nowhere")
		time.Sleep(time.Minute)
		b := n.run("b", "nowhere")
		b.SetMembers(map[string]string{"a": "a"})
		time.Sleep(maxBackoff)
		a.expect("opened b")
		b.expect("opened a")
	})
}

func TestAnAddressThatLeadsBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork(t)
		a := n.run("a", "a")
		a.SetMembers(map[string]string{"b": "a", "a": "a"})
		a.fails("b", "the address of replica b leads to replica a itself")
		if len(a.Status()) != 1 {
			t.Errorf("%v has the replica itself", a.Status())
		}
		a.expect()
	})
}

// TestAfterALinkACallFollowsAtOnce: a process that is gone is soon known to be.
func TestAfterALinkACallFollowsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n, a, b := pair(t)
		time.Sleep(maxBackoff)
		n.cut()
		a.expect("closed b", "opened b")
		b.expect("closed a", "opened a")
		for range 10 { // a link that ends soon waits like a failed call
			n.cut()
			a.take()
		}
		if a.Status()["b"].Connected {
			t.Error("a link that always ends has no back-off")
		}
		time.Sleep(maxBackoff)
		if !a.Status()["b"].Connected {
			t.Error("the back-off is longer than its limit")
		}
		time.Sleep(maxBackoff)
		b.stop()
		time.Sleep(2 * minBackoff)
		a.fails("b", "nobody listens on b")
	})
}

// TestFailedCallsInARowAreLoggedOnce, and again after a link.
func TestFailedCallsInARowAreLoggedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork(t)
		a := n.run("a", "a")
		var lines bytes.Buffer
		a.options.Log = zerolog.New(&lines)
		a.SetMembers(map[string]string{"b": "b"})
		time.Sleep(time.Minute)
		b := n.run("b", "b")
		b.SetMembers(map[string]string{"a": "a"})
		time.Sleep(time.Minute)
		b.stop()
		time.Sleep(time.Minute)
		a.stop()
		var events []string
		for line := range strings.Lines(lines.String()) {
			var fields struct{ Event, Replica, Error string }
			if err := json.Unmarshal([]byte(line), &fields); err != nil {
				t.Fatal(err)
			}
			events = append(events, fields.Event)
		}
		want := []string{"replica_unreachable", "replica_link_opened", "replica_link_ended", "replica_unreachable"}
		if !slices.Equal(events, want) {
			t.Errorf("the log has %q, want %q", events, want)
		}
	})
}

func TestMetrics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := pair(t)
		a.send("b", replica.Welcome{Head: 7})
		b.take()
		for _, p := range []*node{a, b} {
			if links := testutil.ToFloat64(p.metrics.links); links != 1 {
				t.Errorf("%s has %g links", p.id, links)
			}
		}
		for name, got := range map[string]traffic{"sent": a.metrics.sent, "received": b.metrics.received} {
			messages, size := testutil.ToFloat64(got.messages), len(carried(t, replica.Welcome{Head: 7}))
			if sum := testutil.ToFloat64(got.bytes); messages != 1 || sum != float64(size) {
				t.Errorf("%s: %g messages with %g bytes, want one with %d", name, messages, sum, size)
			}
		}
		a.stop()
		b.take()
		if links := testutil.ToFloat64(b.metrics.links); links != 0 {
			t.Errorf("%g links after the end", links)
		}
	})
}

// TestAnotherAddressIsCalledAtOnce, without any time for a back-off.
func TestAnotherAddressIsCalledAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n, a, b := pair(t)
		var lines bytes.Buffer
		a.options.Log = zerolog.New(&lines)
		again := n.run("b", "b2") // the process before has not noticed its end yet
		again.SetMembers(map[string]string{"a": "a"})
		began := time.Now()
		a.SetMembers(map[string]string{"b": "b2"})
		a.expect("closed b", "opened b")
		again.expect("opened a")
		b.expect("closed a")
		if took := time.Since(began); took > 0 {
			t.Errorf("the new address is called after %v", took)
		}
		if !strings.Contains(lines.String(), errMoved.Error()) {
			t.Errorf("the log does not tell of the other address: %s", &lines)
		}
		again.stop()
		a.expect("closed b")
		time.Sleep(time.Minute)
		a.SetMembers(map[string]string{"b": "b"})
		a.expect("opened b")
		b.expect("opened a")
	})
}

func TestAReplicaThatIsNoMemberAnyMore(t *testing.T) {
	for _, first := range []int{0, 1} {
		bubble(t, func(t *testing.T) {
			_, a, b := pair(t)
			nodes := []*node{a, b}
			nodes[first].SetMembers(nil)
			a.expect("closed b")
			b.expect("closed a")
			if all := nodes[first].Status(); len(all) != 0 {
				t.Errorf("%v has a replica that is no member", all)
			}
			time.Sleep(time.Minute)
			a.expect()
			b.expect()
			if first == 1 {
				a.fails("b", "replica b sees no session of replica a in etcd")
			}
			meet(a, b)
			time.Sleep(maxBackoff)
			a.expect("opened b")
			b.expect("opened a")
		})
	}
}

// TestACallWaitsForItsReplica: the other replica may hear of the caller's session a little later.
func TestACallWaitsForItsReplica(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b := n.run("a", "a"), n.run("b", "b")
		a.SetMembers(map[string]string{"b": "b"})
		time.Sleep(memberPatience / 2)
		b.SetMembers(map[string]string{"c": "c"})
		a.expect()
		b.SetMembers(map[string]string{"a": "a"})
		a.expect("opened b")
		b.expect("opened a")
		a.send("b", replica.Welcome{})
		a.expect("sent b")
		b.expect("welcome a")
	})
}

func TestANewerConnectionReplacesTheOlderOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork(t)
		b := n.run("b", "b")
		b.SetMembers(map[string]string{"a": "a"})
		first := n.raw("b", greeting("a", "b", 1))
		b.expect("opened a")
		older := b.link("a")
		n.raw("b", greeting("a", "b", 2))
		b.expect("closed a", "opened a")
		if b.link("a") <= older {
			t.Errorf("link %d follows link %d", b.link("a"), older)
		}
		b.Send(replica.Send{Replica: "a", Link: older, Message: replica.Welcome{}})
		b.expect()
		n.refused(first, "Unavailable: replica b ends the link: a newer connection of the same replica")
	})
}

// TestASilentPeerIsNoticed by the pings of both.
func TestASilentPeerIsNoticed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n, a, b := pair(t)
		time.Sleep(time.Hour - 2*time.Minute) // pings are no offence
		a.expect()
		b.expect()
		n.silence()
		time.Sleep(serverPing + pingTimeout + time.Second)
		b.expect("closed a")
		time.Sleep(clientPing - serverPing)
		a.expect("closed b", "opened b")
		b.expect("opened a")
	})
}

func TestWhatCannotBeReadEndsTheLink(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork(t)
		b := n.run("b", "b")
		b.SetMembers(map[string]string{"a": "a"})
		s := n.raw("b", greeting("a", "b", 1), &replicav1.Frame{})
		n.refused(s, "InvalidArgument: replica b (version 1.0) cannot read a message of this replica: a frame without a message; upgrade the older")
		b.expect("opened a", "closed a")
	})
}

// TestSendNeverWaits while the other side does not read.
func TestSendNeverWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := pair(t)
		b.setBlock(true)
		large, sent := largeReport(10_000, 65_536), 0
		for ; sent < 100; sent++ {
			a.send("b", large)
			if len(a.take()) == 0 {
				break
			}
		}
		if sent < 1 || sent > 20 {
			t.Fatalf("%d messages are sent to a replica that does not read", sent)
		}
		a.send("b", replica.Welcome{}) // waits
		a.expect()
		b.setBlock(false)
		a.expect("sent b", "sent b")
		if got := texts(b.take()); len(got) != sent+2 || got[sent+1] != "welcome a" {
			t.Errorf("%q follow", got)
		}
	})
}

func TestTwoMessagesAtOnceEndTheLink(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := pair(t)
		b.setBlock(true)
		large := largeReport(10_000, 65_536)
		for range 20 {
			a.send("b", large)
			if slices.Contains(texts(a.take()), "closed b") {
				a.fails("b", errBusy.Error())
				b.setBlock(false)
				return
			}
		}
		t.Error("the link goes on")
	})
}

// TestEventsAreInOrder while all kinds of things happen.
func TestEventsAreInOrder(t *testing.T) {
	for seed := range uint64(10) {
		bubble(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			n := newNetwork(t)
			nodes := []*node{n.run("a", "a"), n.run("b", "b"), n.run("c", "c")}
			meet(nodes...)
			for range 200 {
				p, other := nodes[r.IntN(3)], nodes[r.IntN(3)]
				switch r.IntN(12) {
				case 0:
					n.cut()
				case 1:
					p.SetMembers(map[string]string{other.id: other.id})
				case 2:
					meet(nodes...)
				case 3:
					p.setBlock(r.IntN(3) == 0)
				case 4:
					n.raw("c", greeting("a", "c", r.Uint64()))
				case 5:
					time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
				default:
					p.send(other.id, largeReport(1, r.IntN(10_000)))
				}
			}
			for _, p := range nodes {
				p.setBlock(false)
			}
			n.cut()
			for _, p := range nodes {
				p.stop()
			}
			for _, p := range nodes {
				checkOrder(t, seed, p)
			}
		})
	}
}

// checkOrder checks that a replica has one link at a time to each other one, and that all its links are closed.
func checkOrder(t *testing.T, seed uint64, p *node) {
	open, used := map[string]uint64{}, map[uint64]bool{}
	for i, e := range p.take() {
		wrong := false
		switch e := e.(type) {
		case replica.LinkOpened:
			wrong = open[e.Replica] != 0 || used[e.Link] || e.Link == 0
			open[e.Replica], used[e.Link] = e.Link, true
		case replica.LinkClosed:
			wrong = open[e.Replica] != e.Link
			delete(open, e.Replica)
		case replica.Sent:
			wrong = open[e.Replica] != e.Link
		case replica.Received:
			wrong = open[e.Replica] != e.Link
		}
		if wrong {
			t.Fatalf("seed %d: %s got %T as event %d, with the links %v", seed, p.id, e, i, open)
		}
	}
	if len(open) > 0 || len(used) == 0 {
		t.Errorf("seed %d: %s had %d links, and %v are open in the end", seed, p.id, len(used), open)
	}
}

func TestReasonsOfAnEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n, a, b := pair(t)
		n.cut()
		a.take()
		b.take()
		for _, p := range []*node{a, b} {
			for id, s := range p.Status() {
				if s.Connected || s.Err == "" || strings.Contains(s.Err, "rpc error") {
					t.Errorf("the status of the link of %s to %s is %+v", p.id, id, s)
				}
			}
		}
	})
}
