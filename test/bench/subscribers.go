package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
	"hdsd/test/scale"
)

// audience is many subscribers of the same assignments, each on a connection of its own.
// They read no more of a response than they must to acknowledge it.
type audience struct {
	delta  bool
	names  []string
	ack    []byte // what all acknowledgements have in common
	news   atomic.Pointer[news]
	failed atomic.Pointer[error]
	first  atomic.Pointer[wire.Bytes] // what somebody was sent first
	latest atomic.Pointer[wire.Bytes] // what somebody was sent last

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// news is what each subscriber has to receive.
type news struct {
	about []byte // the name of a cluster; nil: all resources
	left  atomic.Int64
	told  chan time.Time // when the last one had it
}

func newNews(subscribers int, about string) *news {
	n := &news{told: make(chan time.Time, 1)}
	if about != "" {
		n.about = []byte(about)
	}
	n.left.Store(int64(subscribers))
	return n
}

// wait returns when the last one had it.
func (n *news) wait(a *audience) (time.Time, error) {
	select {
	case at := <-n.told:
		return at, nil
	case <-time.After(patience):
		if err := a.failed.Load(); err != nil {
			return time.Time{}, *err
		}
		return time.Time{}, fmt.Errorf("%d subscribers were never told of %s: %w", n.left.Load(), n.about, errPatience)
	}
}

// newAudience subscribes, and waits until all have all assignments.
func newAudience(server string, w *scale.World, subscribers, names int, delta bool) (*audience, error) {
	ctx, cancel := context.WithCancel(context.Background())
	a := &audience{delta: delta, cancel: cancel}
	for i := range names {
		a.names = append(a.names, w.Name(i))
	}
	if err := a.encode(); err != nil {
		return nil, err
	}
	all := newNews(subscribers, "")
	a.news.Store(all)
	for range subscribers {
		a.running.Go(func() {
			if err := a.subscribe(ctx, server); err != nil && ctx.Err() == nil {
				a.failed.CompareAndSwap(nil, &err)
			}
		})
	}
	if _, err := all.wait(a); err != nil {
		a.leave()
		return nil, err
	}
	return a, nil
}

func (a *audience) leave() { a.cancel(); a.running.Wait() }

// encode prepares what acknowledgements have in common. Those of the state of the world
// repeat all names, as Envoy's do.
func (a *audience) encode() (err error) {
	if a.delta {
		a.ack, err = proto.Marshal(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType})
	} else {
		a.ack, err = proto.Marshal(&discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNames: a.names})
	}
	return err
}

// request is the first one.
func (a *audience) request() proto.Message {
	node := &corev3.Node{Id: "data-plane"}
	if a.delta {
		return &discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: a.names}
	}
	return &discoveryv3.DiscoveryRequest{Node: node, TypeUrl: resourcev3.EndpointType, ResourceNames: a.names}
}

func (a *audience) subscribe(ctx context.Context, server string) error {
	method := discoveryv3.AggregatedDiscoveryService_StreamAggregatedResources_FullMethodName
	if a.delta {
		method = discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName
	}
	stream, hangUp, err := scale.Dial(ctx, server, method)
	if err != nil {
		return err
	}
	defer func() { _ = hangUp() }()
	if err := stream.SendMsg(a.request()); err != nil {
		return err
	}
	return a.receive(stream)
}

func (a *audience) receive(stream grpc.ClientStream) error {
	var message wire.Bytes
	var counted *news
	for resources := 0; ; {
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		if a.first.Load() == nil {
			kept := bytes.Clone(message)
			a.first.CompareAndSwap(nil, (*wire.Bytes)(&kept))
		}
		r, err := skim(message)
		if err != nil {
			return err
		}
		if now, n := time.Now(), a.news.Load(); n != counted {
			resources += r.resources
			if n.about == nil && resources >= len(a.names) || n.about != nil && bytes.Contains(message, n.about) {
				counted = n
				if n.left.Add(-1) == 0 {
					kept := bytes.Clone(message)
					a.latest.Store((*wire.Bytes)(&kept))
					n.told <- now
				}
			}
		}
		ack := wire.Bytes(a.acknowledge(r))
		if err := stream.SendMsg(&ack); err != nil {
			return err
		}
	}
}

// response is what matters of one.
type response struct {
	version, nonce []byte
	resources      int
}

// Fields of DiscoveryResponse and DeltaDiscoveryResponse, which agree.
const versionField, resourcesField, nonceField = 1, 2, 5

// skim reads no more than it must.
func skim(message []byte) (r response, err error) {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return r, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(field, kind, message[n:])
		if size < 0 {
			return r, protowire.ParseError(size)
		}
		if value := message[n : n+size]; kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
			switch field {
			case versionField:
				r.version = value
			case resourcesField:
				r.resources++
			case nonceField:
				r.nonce = value
			}
		}
		message = message[n+size:]
	}
	return r, nil
}

// Fields of requests.
const requestVersion, requestNonce, deltaNonce = 1, 5, 6

func (a *audience) acknowledge(r response) []byte {
	ack := make([]byte, 0, len(a.ack)+len(r.version)+len(r.nonce)+8)
	ack = append(ack, a.ack...)
	nonce := protowire.Number(deltaNonce)
	if !a.delta {
		nonce = requestNonce
		ack = protowire.AppendBytes(protowire.AppendTag(ack, requestVersion, protowire.BytesType), r.version)
	}
	return protowire.AppendBytes(protowire.AppendTag(ack, nonce, protowire.BytesType), r.nonce)
}
