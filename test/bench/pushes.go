package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
	"hdsd/test/scale"
)

// pushes is flips, one after the other, each of which all subscribers must be told of.
type pushes struct {
	title                 string
	subscribers, clusters int
	delta                 bool
	firstSync             bool // not flips, but subscribers that come, all at once
	markCPU, markTime     float64

	world          *scale.World // of the latest hdsd
	initial, frame wire.Bytes   // what that has sent
}

const endpointsOfACluster = 3

// flips is how many make a turn.
const flips = 10

const oneFrame = "writes one frame"

func (s *pushes) name() string     { return s.title }
func (s *pushes) turns(l *lab) int { return l.turns }

func (s *pushes) figures() []figure {
	if s.firstSync {
		return []figure{{name: "CPU", unit: "ms", floor: oneFrame, mark: s.markCPU}, {name: "time to the last data plane", unit: "ms", floor: oneFrame}}
	}
	return []figure{{name: "CPU of a flip", unit: "ms", floor: oneFrame, mark: s.markCPU}, {name: "time to the last data plane", unit: "ms", floor: oneFrame, mark: s.markTime}}
}

// publisher is whoever tells subscribers: hdsd, the floor, a peer.
type publisher struct {
	*process
	s      *pushes
	world  *scale.World // its own: two revisions of hdsd may take turns
	server string
	ready  func(endpoint int, down bool)       // prepares it; nil: there is nothing to prepare
	flip   func(endpoint int, down bool) error // makes it happen
	verify func(endpoint int, down bool) error // waits until it was seen; nil: nobody looks
	all    *audience
	next   int
}

// turn measures.
func (p *publisher) turn() ([]float64, error) {
	if p.s.firstSync {
		return p.sync()
	}
	before, err := p.processor()
	if err != nil {
		return nil, err
	}
	var total time.Duration
	for range flips {
		took, err := p.one()
		if err != nil {
			return nil, err
		}
		total += took
	}
	after, err := p.processor()
	return []float64{milliseconds(after-before) / flips, milliseconds(total) / flips}, err
}

// one has one endpoint flip. The next one is of another cluster.
func (p *publisher) one() (time.Duration, error) {
	each, round := p.world.Size()/p.s.clusters, p.next/p.s.clusters
	endpoint := p.next%p.s.clusters*each + round/2%each
	down := round%2 == 0 // and up again in the next round
	p.next++
	n := newNews(p.s.subscribers, p.world.Name(p.world.ClusterOf(endpoint)))
	p.all.news.Store(n)
	if p.ready != nil {
		p.ready(endpoint, down)
	}
	began := time.Now()
	if err := p.flip(endpoint, down); err != nil {
		return 0, err
	}
	at, err := n.wait(p.all)
	if err == nil && p.verify != nil {
		err = p.verify(endpoint, down)
	}
	return at.Sub(began), err
}

// sync has all subscribers come, and go.
func (p *publisher) sync() ([]float64, error) {
	before, err := p.processor()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	a, err := newAudience(p.server, p.world, p.s.subscribers, p.s.clusters, p.s.delta)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	after, err := p.processor()
	if err == nil && p.verify != nil {
		p.all = a
		_, err = p.one()
	}
	a.leave()
	return []float64{milliseconds(after - before), milliseconds(took)}, err
}

func (s *pushes) hdsd(l *lab, binary string) (*contender, error) {
	s.world = scale.NewWorld(s.clusters, endpointsOfACluster)
	p, err := s.publish(l, binary, 10)
	if err != nil {
		return nil, err
	}
	return &contender{turn: p.turn, close: p.close}, nil
}

// subject is hdsd as a publisher, its checkers, and a data plane that sees what becomes of
// flips.
type subject struct {
	*publisher
	h    *hdsd
	crew *crew
	sees *plane // nil: nobody looks
}

// publish starts an hdsd with some checkers and all subscribers.
func (s *pushes) publish(l *lab, binary string, checkers int) (*subject, error) {
	h, err := newHDSD(l.dir, binary, s.world, fmt.Sprintf(settings, 1, 1.0))
	if err != nil {
		return nil, err
	}
	if err := h.start(); err != nil {
		return nil, err
	}
	p := &subject{
		publisher: &publisher{process: h.process, s: s, world: s.world, server: h.grpc},
		h:         h, crew: newCrew(h.grpc, s.world, checkers, time.Second),
	}
	if err := p.connect(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *subject) close() {
	if p.all != nil {
		p.all.leave()
	}
	p.h.kill()
	p.crew.leave()
	p.look(nil)
}

// look has another data plane see what becomes of flips, or nobody.
func (p *subject) look(next *plane) {
	if p.sees != nil {
		p.sees.leave()
	}
	p.sees, p.verify = next, nil
}

// connect waits until everything is well, connects the subscribers, and keeps what hdsd
// sends them, for the floor to send.
func (p *subject) connect() error {
	err := p.crew.settle(p.h, 1)
	if err != nil {
		return err
	}
	sees, err := newPlane(p.server, p.world)
	if err != nil {
		return err
	}
	p.look(sees)
	of := p.crew.checkersOf()
	wait := func() (time.Time, error) { return time.Time{}, nil }
	p.flip = func(endpoint int, down bool) error {
		wait = sees.expect([]int{endpoint}, down)
		p.world.Set(endpoint, down)
		_, err := of[endpoint][0].send()
		return err
	}
	p.verify = func(int, bool) error { _, err := wait(); return err }
	if p.all, err = newAudience(p.server, p.world, p.s.subscribers, p.s.clusters, p.s.delta); err != nil {
		return err
	}
	if _, err := p.one(); err != nil {
		return err
	}
	p.s.initial, p.s.frame = *p.all.first.Load(), *p.all.latest.Load()
	if p.s.firstSync {
		p.all.leave()
	}
	return nil
}

func (s *pushes) others(l *lab) (all []*contender, err error) {
	makers := []func(*lab) (*contender, error){s.newFloor(plainFloor, oneFrame), s.newFloor(tunedFloor, oneFrame+asTuned), s.newPeer("linear", "LinearCache"), s.newPeer("snapshot", "SnapshotCache")}
	for _, m := range makers {
		c, err := m(l)
		if err != nil {
			return all, err
		}
		all = append(all, c)
	}
	return all, nil
}

// newFloor is the server that writes one frame to all.
func (s *pushes) newFloor(kind, name string) func(*lab) (*contender, error) {
	return func(l *lab) (*contender, error) { return s.floor(l, kind, name) }
}

func (s *pushes) floor(l *lab, kind, name string) (*contender, error) {
	process, address, err := helper(l.dir, kind)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &publisher{process: process, s: s, world: s.world, server: address}
	ends := func() {
		cancel()
		if p.all != nil {
			p.all.leave()
		}
		process.kill()
	}
	stream, hangUp, err := scale.Dial(ctx, address, framesMethod)
	if err != nil {
		ends()
		return nil, err
	}
	tell := func(frame wire.Bytes) error {
		err := stream.SendMsg(&frame)
		if err == nil {
			var answer wire.Bytes
			err = stream.RecvMsg(&answer)
		}
		return err
	}
	// All clusters' names have the same length, so that one frame can stand for each flip.
	p.flip = func(endpoint int, _ bool) error {
		cluster := s.world.Name(s.world.ClusterOf(endpoint))
		return tell(bytes.ReplaceAll(s.frame, []byte(s.world.Name(0)), []byte(cluster)))
	}
	if err = tell(s.initial); err == nil {
		p.all, err = newAudience(address, s.world, s.subscribers, s.clusters, s.delta)
	}
	if err != nil {
		ends()
		return nil, err
	}
	if s.firstSync {
		p.all.leave()
	}
	return &contender{name: name, turn: p.turn, close: func() { _ = hangUp(); ends() }}, nil
}

// newPeer is a cache of go-control-plane.
func (s *pushes) newPeer(kind, name string) func(*lab) (*contender, error) {
	return func(l *lab) (*contender, error) {
		process, addresses, err := helper(l.dir, "peer", kind)
		if err != nil {
			return nil, err
		}
		server, control, _ := strings.Cut(addresses, " ")
		p := &publisher{process: process, s: s, world: s.world, server: server}
		ends := func() {
			if p.all != nil {
				p.all.leave()
			}
			process.kill()
		}
		p.flip = func(endpoint int, down bool) error {
			cluster := s.world.ClusterOf(endpoint)
			return post("http://"+control+"/last", s.assignment(cluster, endpoint, down))
		}
		for i := range s.clusters {
			path := "/one"
			if i == s.clusters-1 {
				path = "/last"
			}
			if err := post("http://"+control+path, s.assignment(i, -1, false)); err != nil {
				ends()
				return nil, err
			}
		}
		if p.all, err = newAudience(server, s.world, s.subscribers, s.clusters, s.delta); err != nil {
			ends()
			return nil, err
		}
		if s.firstSync {
			p.all.leave()
		}
		return &contender{name: name, turn: p.turn, close: ends}, nil
	}
}

// assignment is that of a cluster, where one endpoint may be down.
func (s *pushes) assignment(cluster, endpoint int, down bool) *endpointv3.ClusterLoadAssignment {
	group := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Region: "eu", Zone: "a"}}
	for i := cluster * endpointsOfACluster; i < (cluster+1)*endpointsOfACluster; i++ {
		health := corev3.HealthStatus_HEALTHY
		if i == endpoint && down {
			health = corev3.HealthStatus_UNHEALTHY
		}
		host, _, _ := strings.Cut(s.world.Address(i), ":")
		group.LbEndpoints = append(group.LbEndpoints, &endpointv3.LbEndpoint{
			HealthStatus: health,
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{
				Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 8080},
				}},
			}}},
		})
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: s.world.Name(cluster), Endpoints: []*endpointv3.LocalityLbEndpoints{group}}
}

func post(url string, m proto.Message) error {
	body, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	answer, err := http.Post(url, "application/x-protobuf", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return nil
}
