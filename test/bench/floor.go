package main

import (
	"fmt"
	"net"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"hdsd/hds"
	"hdsd/internal/wire"
)

// Methods of the floors that are not Envoy's.
const (
	echoMethod   = "/bench.Floor/Echo"   // the first message is the answer to each later one
	framesMethod = "/bench.Floor/Frames" // the first message is what new subscribers get, each later one is for all
)

// dropped is a message that nobody reads: its length.
type dropped int

// UnmarshalWire implements wire.Unmarshaler.
func (d *dropped) UnmarshalWire(data mem.BufferSlice) error { *d = dropped(data.Len()); return nil }

// floor is a server that only moves bytes.
type floor struct {
	mu          sync.Mutex // guards the fields below
	initial     wire.Bytes
	subscribers map[chan wire.Bytes]bool
}

// queued is how many frames may wait for a subscriber. The load never has so many.
const queued = 64

// The two floors: with gRPC's own settings, which hdsd is compared with, and with hdsd's.
const (
	plainFloor = "floor"
	tunedFloor = "floor-tuned"

	asTuned = ", with hdsd's gRPC settings" // after the name of a floor
)

// settingsOf gives the gRPC settings of a floor.
func settingsOf(kind string) []grpc.ServerOption {
	if kind == tunedFloor {
		return hds.ServerOptions(hds.Options{MaxMessageBytes: maxMessage})
	}
	return []grpc.ServerOption{wire.ServerOption(), grpc.MaxRecvMsgSize(maxMessage)}
}

const maxMessage = 64 << 20

// serveFloor serves until the process ends.
func serveFloor(kind string) error {
	f := &floor{subscribers: map[chan wire.Bytes]bool{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer(append(settingsOf(kind), grpc.UnknownServiceHandler(f.serve))...)
	fmt.Println(listener.Addr())
	return server.Serve(listener)
}

func (f *floor) serve(_ any, stream grpc.ServerStream) error {
	switch method, _ := grpc.MethodFromServerStream(stream); method {
	case healthv3.HealthDiscoveryService_StreamHealthCheck_FullMethodName:
		return drop(stream)
	case discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName,
		discoveryv3.AggregatedDiscoveryService_StreamAggregatedResources_FullMethodName:
		return f.subscribe(stream)
	case echoMethod:
		return echo(stream)
	case framesMethod:
		return f.frames(stream)
	default:
		return status.Error(codes.Unimplemented, method)
	}
}

// marker is a message that a dropping server answers, so that the load sees that all
// before it was read.
var marker = wire.Bytes{0x78, 0} // an unknown field to those who decode

func drop(stream grpc.ServerStream) error {
	for {
		var message dropped
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		if int(message) == len(marker) {
			if err := stream.SendMsg(&marker); err != nil {
				return err
			}
		}
	}
}

func echo(stream grpc.ServerStream) error {
	var answer wire.Bytes
	for {
		if err := stream.RecvMsg(&answer); err != nil {
			return err
		}
		for {
			var message dropped
			if err := stream.RecvMsg(&message); err != nil {
				return err
			}
			if err := stream.SendMsg(&answer); err != nil {
				return err
			}
		}
	}
}

func (f *floor) frames(stream grpc.ServerStream) error {
	for first := true; ; first = false {
		var frame wire.Bytes // not used again: subscribers may still send it
		if err := stream.RecvMsg(&frame); err != nil {
			return err
		}
		f.publish(frame, first)
		if err := stream.SendMsg(&marker); err != nil {
			return err
		}
	}
}

func (f *floor) publish(frame wire.Bytes, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first {
		f.initial = frame
		return
	}
	for to := range f.subscribers {
		to <- frame
	}
}

// subscribe sends each frame, and drops what the subscriber says.
func (f *floor) subscribe(stream grpc.ServerStream) error {
	var request dropped
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	frames := make(chan wire.Bytes, queued)
	f.mu.Lock()
	frames <- f.initial
	f.subscribers[frames] = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subscribers, frames)
	}()
	go func() {
		for stream.RecvMsg(&request) == nil { // until the stream ends
		}
	}()
	for {
		select {
		case frame := <-frames:
			if err := stream.SendMsg(&frame); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}
