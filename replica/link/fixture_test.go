package link

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/replica"
)

// network joins replicas in a bubble, where the time is virtual.
type network struct {
	testing.TB
	processes uint64

	mu        sync.Mutex
	listeners map[string]*bufconn.Listener // by address
	wires     []*wire
}

// wire is one end of a connection, which may go silent.
type wire struct {
	net.Conn
	silence, closed chan struct{}
	once            sync.Once
}

func (w *wire) Write(b []byte) (int, error) {
	select {
	case <-w.silence:
		return len(b), nil // lost
	default:
		return w.Conn.Write(b)
	}
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	select {
	case <-w.silence:
		<-w.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	return w.Conn.Close()
}

func newNetwork(t testing.TB) *network {
	return &network{TB: t, listeners: map[string]*bufconn.Listener{}}
}

// dial connects to an address.
func (n *network) dial(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("nobody listens on %s", address)
	}
	conn, err := l.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: conn, silence: make(chan struct{}), closed: make(chan struct{})}
	n.mu.Lock()
	n.wires = append(n.wires, w)
	n.mu.Unlock()
	return w, nil
}

// silence lets all connections go silent. Nobody gets an error.
func (n *network) silence() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.wires {
		close(w.silence)
	}
	n.wires = nil
}

// cut ends all connections.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.wires {
		w.Close()
	}
	n.wires = nil
}

// serve serves on an address until the end of the test, or until the result is called.
func (n *network) serve(address string, register func(grpc.ServiceRegistrar), options ...grpc.ServerOption) (stop func()) {
	listener, server := bufconn.Listen(1<<16), grpc.NewServer(append(ServerOptions(), options...)...)
	register(server)
	n.mu.Lock()
	n.listeners[address] = listener
	n.mu.Unlock()
	done := make(chan error)
	go func() { done <- server.Serve(listener) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			n.mu.Lock()
			if n.listeners[address] == listener {
				delete(n.listeners, address)
			}
			n.mu.Unlock()
			server.Stop()
			<-done
		})
	}
	n.Cleanup(stop)
	return stop
}

// node is a replica with its events.
type node struct {
	*Links
	network *network
	id      string
	stop    func()

	mu     sync.Mutex
	events []replica.Event
	block  chan struct{} // post waits for it; nil: it does not wait
}

// run starts a replica that others reach at an address.
func (n *network) run(id, address string) *node {
	n.Helper()
	p := &node{network: n, id: id}
	n.processes++
	p.Links = New(Options{ID: id, Process: n.processes, Version: "1.0", Log: zerolog.Nop(), Dial: n.dial}, p.post)
	stopServing := n.serve(address, p.Register)
	p.stop = func() {
		p.Close()
		stopServing()
	}
	n.Cleanup(p.stop)
	return p
}

func (p *node) post(e replica.Event) {
	p.mu.Lock()
	block := p.block
	p.mu.Unlock()
	if block != nil {
		<-block
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
}

// setBlock lets post wait, or ends that.
func (p *node) setBlock(wait bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.block != nil {
		close(p.block)
		p.block = nil
	}
	if wait {
		p.block = make(chan struct{})
	}
}

// take returns the events since the previous call.
func (p *node) take() []replica.Event {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	events := p.events
	p.events = nil
	return events
}

// expect checks the events since the previous check, without the numbers of links.
func (p *node) expect(want ...string) {
	p.network.Helper()
	if got := texts(p.take()); !slices.Equal(got, want) {
		p.network.Fatalf("%s got %q, want %q", p.id, got, want)
	}
}

// texts describes events.
func texts(events []replica.Event) (all []string) {
	for _, e := range events {
		switch e := e.(type) {
		case replica.LinkOpened:
			all = append(all, "opened "+e.Replica)
		case replica.LinkClosed:
			all = append(all, "closed "+e.Replica)
		case replica.Sent:
			all = append(all, "sent "+e.Replica)
		case replica.Received:
			all = append(all, strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T ", e.Message), "replica."))+e.Replica)
		}
	}
	return all
}

// link returns the number of the present link to a replica.
func (p *node) link(id string) uint64 {
	p.Links.mu.Lock()
	defer p.Links.mu.Unlock()
	if k := p.links[id]; k != nil {
		return k.number
	}
	return 0
}

// send sends a message on the present link.
func (p *node) send(id string, m replica.Message) {
	p.Send(replica.Send{Replica: id, Link: p.link(id), Message: m})
}

// fails checks the status of the link to a replica that is not connected.
func (p *node) fails(id, want string) {
	p.network.Helper()
	synctest.Wait()
	if s := p.Status()[id]; s.Connected || !strings.Contains(s.Err, want) {
		p.network.Errorf("%s has a link to %s: %v, with the error %q, want %q", p.id, id, s.Connected, s.Err, want)
	}
}

// meet makes replicas members of each other. Each has its id as its address.
func meet(nodes ...*node) {
	addresses := map[string]string{}
	for _, p := range nodes {
		addresses[p.id] = p.id
	}
	for _, p := range nodes {
		p.SetMembers(maps.Clone(addresses))
	}
}

// pair returns two replicas with a link.
func pair(t testing.TB) (n *network, a, b *node) {
	t.Helper()
	n = newNetwork(t)
	a, b = n.run("a", "a"), n.run("b", "b")
	meet(a, b)
	a.expect("opened b")
	b.expect("opened a")
	return n, a, b
}

// raw opens a stream that sends what it is told.
func (n *network) raw(address string, frames ...*replicav1.Frame) replicav1.Links_LinkClient {
	n.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(n.dial))
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { conn.Close() })
	s, err := replicav1.NewLinksClient(conn).Link(context.Background())
	if err != nil {
		n.Fatal(err)
	}
	for _, f := range frames {
		if err := s.Send(f); err != nil {
			n.Fatal(err)
		}
	}
	return s
}

// refused checks the error that ends a raw stream.
func (n *network) refused(s replicav1.Links_LinkClient, want string) {
	n.Helper()
	for {
		_, err := s.Recv()
		if err == nil {
			continue
		}
		if got := fmt.Sprintf("%s: %s", status.Code(err), status.Convert(err).Message()); !strings.Contains(got, want) {
			n.Errorf("%s, want %q", got, want)
		}
		return
	}
}

// greeting returns a hello.
func greeting(id, dialled string, process uint64) *replicav1.Frame {
	return (&Options{ID: id, Process: process, Version: "0.9"}).hello(dialled)
}

var errSilent = errors.New("the bubble has waited too long")

// bubble runs a test in a bubble with a deadline.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		timer := time.AfterFunc(time.Hour, func() { panic(errSilent) })
		t.Cleanup(func() { timer.Stop() })
		test(t)
	})
}
