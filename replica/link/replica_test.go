package link

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/replica"
	"hdsd/ruling"
	"hdsd/source/sample"
	"hdsd/test/authority"
)

var clusterRules = catalog.NewRules(&configv1.Config{Assignment: &configv1.Assignment{Redundancy: 1}})

// process runs a replica with real links. A checker of it finds every endpoint healthy.
type process struct {
	t      *testing.T
	links  *Links
	events chan replica.Event
	done   chan struct{} // ends the replica
	ended  chan struct{}
	others []*process

	mu     sync.Mutex // guards the fields below
	health map[health.EndpointID]health.Status
	orders map[log.OrderID]error
	news   chan struct{} // has one after a change of them
}

// startProcess starts a replica at a free port of the loopback.
func startProcess(t *testing.T, id string, number uint64, secure credentials.TransportCredentials) (*process, string) {
	p := &process{
		t: t, events: make(chan replica.Event, 16), done: make(chan struct{}), ended: make(chan struct{}),
		health: map[health.EndpointID]health.Status{}, orders: map[log.OrderID]error{}, news: make(chan struct{}, 1),
	}
	p.links = New(Options{ID: id, Process: number, Version: "1.0", Log: zerolog.Nop(), Credentials: secure}, p.post)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(append(ServerOptions(), grpc.Creds(secure))...)
	p.links.Register(s)
	go s.Serve(listener)
	r := replica.New(replica.Options{
		ID: id, Process: number, Timing: machine.Timing{Report: 100 * time.Millisecond, Grace: time.Second, Settle: 50 * time.Millisecond},
		MaxPayload: 1 << 20,
	}, log.State{TakenOver: map[string]bool{}}, 0)
	go p.run(r)
	t.Cleanup(func() {
		close(p.done)
		p.links.Close()
		s.Stop()
		<-p.ended
	})
	return p, listener.Addr().String()
}

// post is the mailbox of the replica.
func (p *process) post(e replica.Event) {
	select {
	case p.events <- e:
	case <-p.done:
	}
}

func (p *process) run(r *replica.Replica) {
	defer close(p.ended)
	var next []replica.Event // that effects lead to
	carryOut := func(e replica.Effect) { next = append(next, p.carryOut(r, e)...) }
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var e replica.Event
		select {
		case e = <-p.events:
		case <-timer.C:
			e = replica.Tick{}
		case <-p.done:
			return
		}
		for next = []replica.Event{e}; len(next) > 0; {
			e, next = next[0], next[1:]
			r.Step(time.Now(), e, carryOut)
		}
		timer.Reset(r.Wait(time.Now()))
	}
}

// carryOut carries out an effect, and returns the events that it leads to.
func (p *process) carryOut(r *replica.Replica, e replica.Effect) []replica.Event {
	switch e := e.(type) {
	case replica.Send:
		p.links.Send(e)
	case replica.Commit:
		read := replica.Read{Sequence: e.Sequence, Epoch: e.Epoch, Payload: e.Payload}
		for _, other := range p.others {
			other.post(read)
		}
		return []replica.Event{replica.Committed{Epoch: e.Epoch, Sequence: e.Sequence}, read}
	case replica.Assigned:
		var votes []health.Vote
		for _, id := range e.Specifier.Order {
			votes = append(votes, health.Vote{Endpoint: id, Status: health.Healthy, HTTPStatusCode: 200})
		}
		return []replica.Event{
			replica.Local{Event: machine.Followed{Checker: e.Checker, Specifier: e.Specifier}},
			replica.Local{Event: machine.Reported{Checker: e.Checker, Votes: votes}},
		}
	case replica.Published:
		p.mu.Lock()
		for _, h := range e.Health {
			p.health[h.ID] = h.Status
		}
		p.mu.Unlock()
		p.tell()
	case replica.OrderDone:
		p.mu.Lock()
		p.orders[e.ID] = e.Err
		p.mu.Unlock()
		p.tell()
	case replica.Resign:
		p.t.Errorf("the leader resigns: %v", e.Err)
	case replica.Faulted:
		p.t.Errorf("the log cannot be read: %v", e.Err)
	}
	return nil
}

func (p *process) tell() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// await waits until a condition holds.
func (p *process) await(what string, holds func() bool) {
	p.t.Helper()
	patience := time.After(30 * time.Second)
	for {
		p.mu.Lock()
		ok := holds()
		p.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-p.news:
		case <-patience:
			p.t.Fatalf("%s does not come to be; the links are %v", what, p.links.Status())
		}
	}
}

// TestTwoReplicasDecideAsOne over TLS: one leads, and the other has the checker, and takes orders.
func TestTwoReplicasDecideAsOne(t *testing.T) {
	ca := authority.New(t, "replicas")
	for _, leads := range []int{0, 1} {
		t.Run(fmt.Sprint(leads), func(t *testing.T) {
			var all []*process
			addresses := map[string]string{}
			for i, id := range []string{"a", "b"} {
				p, address := startProcess(t, id, uint64(i+1)<<32, mutualTLS(t, ca, id))
				all, addresses[id] = append(all, p), address
			}
			leader, follower, number := all[leads], all[1-leads], uint64(2-leads)<<32 // of the follower
			leader.others = []*process{follower}
			k := catalog.Prepare(sample.Web("web", "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"), clusterRules)
			for _, p := range all {
				p.links.SetMembers(addresses)
				p.post(replica.Local{Event: machine.Delivered{Delivery: catalog.Delivery{
					Rules: clusterRules, Changed: []catalog.Change{{Cluster: k}}, Answered: map[string]bool{"local": true}, Complete: true,
				}}})
				p.post(replica.Members{Replicas: []string{"a", "b"}, Leader: []string{"a", "b"}[leads], Epoch: 1})
				p.post(replica.Begun{})
			}
			follower.post(replica.Local{Event: machine.Connected{Checker: health.Checker{
				ID: "checker-1", Version: "envoy/1.40.0", Abilities: health.Abilities{health.HTTP: {}, health.FreshCodes: {}},
			}}})
			leader.post(replica.Won{Epoch: 1})
			for _, p := range all {
				p.await("the health of all endpoints", func() bool {
					up := 0
					for _, status := range p.health {
						if status == health.Healthy {
							up++
						}
					}
					return up == 3
				})
			}
			override := func(cluster string) *machine.SetOverride {
				return &machine.SetOverride{Override: log.Override{Scope: health.Endpoint{Cluster: cluster}, Status: health.Draining, Reason: "r", Author: "o"}}
			}
			for i, cluster := range []string{"web", "unknown"} {
				follower.post(replica.Ordered{ID: log.OrderID{Process: number, Number: uint64(i) + 1}, Order: override(cluster)})
			}
			follower.await("the end of the orders", func() bool { return len(follower.orders) == 2 })
			if err := follower.orders[log.OrderID{Process: number, Number: 1}]; err != nil {
				t.Error(err)
			}
			var refusal *ruling.Refusal
			if err := follower.orders[log.OrderID{Process: number, Number: 2}]; !errors.As(err, &refusal) || !refusal.UnknownCluster {
				t.Errorf("an override of an unknown cluster: %v", err)
			}
			leader.await("the override", func() bool {
				for _, status := range leader.health {
					if status != health.Draining {
						return false
					}
				}
				return true
			})
		})
	}
}

// mutualTLS returns the credentials of a replica for both directions.
func mutualTLS(t *testing.T, ca *authority.Authority, name string) credentials.TransportCredentials {
	return credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{ca.Issue(t, name).Certificate}, RootCAs: ca.Pool(), ClientCAs: ca.Pool(),
		ClientAuth: tls.RequireAndVerifyClientCert,
	})
}

func TestACertificateOfAnotherAuthority(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := newNetwork(t)
		server := mutualTLS(t, authority.New(t, "replicas"), "b")
		n.serve("b", func(grpc.ServiceRegistrar) {}, grpc.Creds(server))
		a := n.run("a", "a")
		a.options.Credentials = mutualTLS(t, authority.New(t, "another"), "a")
		a.SetMembers(map[string]string{"b": "b"})
		a.fails("b", "certificate signed by unknown authority")
	})
}

// BenchmarkRoundTrip takes a small report to another replica over the loopback, and directions back.
func BenchmarkRoundTrip(b *testing.B) {
	events := [2]chan replica.Event{make(chan replica.Event, 16), make(chan replica.Event, 16)}
	addresses, links := map[string]string{}, [2]*Links{}
	for i, id := range []string{"a", "b"} {
		links[i] = New(Options{ID: id, Process: uint64(i), Log: zerolog.Nop()}, func(e replica.Event) {
			if _, ok := e.(replica.Sent); !ok {
				events[i] <- e
			}
		})
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		s := grpc.NewServer(ServerOptions()...)
		links[i].Register(s)
		go s.Serve(listener)
		b.Cleanup(func() {
			links[i].Close()
			s.Stop()
		})
		addresses[id] = listener.Addr().String()
	}
	var numbers [2]uint64
	for i := range links {
		links[i].SetMembers(addresses)
	}
	for i := range links {
		opened, _ := (<-events[i]).(replica.LinkOpened)
		numbers[i] = opened.Link
	}
	report, directions := largeReport(1, 3), replica.Directions{Resend: []string{"checker"}}
	report.Sessions[0].Node = nil
	for b.Loop() {
		links[0].Send(replica.Send{Replica: "b", Link: numbers[0], Message: report})
		<-events[1]
		links[1].Send(replica.Send{Replica: "a", Link: numbers[1], Message: directions})
		<-events[0]
	}
}
