package csds

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/gate"
	"hdsd/internal/rest"
)

// Options are the settings of a Server. The zero value is ready to use.
type Options struct {
	// MaxBytes is the size of the largest response; a larger one is refused with
	// RESOURCE_EXHAUSTED. Default: 64 MiB.
	MaxBytes int
	// Bodies bounds the bytes of REST requests; nil: nothing does.
	Bodies *rest.Budget
	// Concurrent bounds the responses in progress; others wait. Default: 2.
	Concurrent int
	// WriteTimeout bounds the wait of a write for a client that does not read. Default: 12 s.
	WriteTimeout time.Duration
}

// Server serves client status.
type Server struct {
	statusv3.UnimplementedClientStatusDiscoveryServiceServer

	// Set once.
	sources      []Source
	maxBytes     int
	bodies       *rest.Budget
	writeTimeout time.Duration
	turns        chan struct{} // holds one for each response in progress

	streams *gate.Gate
}

// NewServer makes a server that shows the clients of all sources, one source after the
// other.
func NewServer(o Options, sources ...Source) *Server {
	return &Server{
		sources:      sources,
		maxBytes:     cmp.Or(o.MaxBytes, 64<<20),
		bodies:       o.Bodies,
		writeTimeout: cmp.Or(o.WriteTimeout, 12*time.Second),
		turns:        make(chan struct{}, cmp.Or(o.Concurrent, 2)),
		streams:      gate.New(),
	}
}

// Register makes r serve client status.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	statusv3.RegisterClientStatusDiscoveryServiceServer(r, s)
}

// Close ends all streams with UNAVAILABLE and waits for them.
func (s *Server) Close() { s.streams.Close() }

// FetchClientStatus answers one request.
func (s *Server) FetchClientStatus(ctx context.Context, r *statusv3.ClientStatusRequest) (*statusv3.ClientStatusResponse, error) {
	return s.answer(ctx, r)
}

// StreamClientStatus answers each request of a stream with one response.
func (s *Server) StreamClientStatus(g grpc.BidiStreamingServer[statusv3.ClientStatusRequest, statusv3.ClientStatusResponse]) error {
	if !s.streams.Enter() {
		return gate.ErrClosing
	}
	defer s.streams.Leave()
	end := make(chan error, 2) // of the conversation, and of its write deadline
	s.streams.Go(func() { end <- s.converse(g, end) })
	select {
	case err := <-end:
		return err
	case <-g.Context().Done(): // also when its authority is withdrawn
		return status.FromContextError(g.Context().Err()).Err()
	case <-s.streams.Closing():
		return gate.ErrClosing
	}
}

// converse answers the requests of a stream until it ends.
func (s *Server) converse(g grpc.BidiStreamingServer[statusv3.ClientStatusRequest, statusv3.ClientStatusResponse], stuck chan<- error) error {
	for {
		r, err := g.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		response, err := s.answer(g.Context(), r)
		if err != nil {
			return err
		}
		deadline := time.AfterFunc(s.writeTimeout, func() {
			select {
			case stuck <- status.Errorf(codes.DeadlineExceeded, "the client has not read for %v", s.writeTimeout):
			default:
			}
		})
		err = g.Send(response)
		deadline.Stop()
		if err != nil {
			return err
		}
	}
}

// answer makes the response to a request. The client gets its errors.
func (s *Server) answer(ctx context.Context, r *statusv3.ClientStatusRequest) (*statusv3.ClientStatusResponse, error) {
	match, err := compile(r.GetNodeMatchers())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	case <-s.streams.Closing():
		return nil, gate.ErrClosing
	}
	response, size := &statusv3.ClientStatusResponse{}, 0
	w := writer{exclude: r.GetExcludeResourceContents()}
	for _, source := range s.sources {
		for c := range source.Clients {
			if ctx.Err() != nil {
				return nil, status.FromContextError(ctx.Err()).Err()
			}
			if !match.matches(c.Node) {
				continue
			}
			w.left = s.maxBytes - size
			config := w.client(&c)
			if size += proto.Size(config); w.left < 0 || size > s.maxBytes {
				return nil, s.tooLarge()
			}
			response.Config = append(response.Config, config)
		}
	}
	return response, nil
}

func (s *Server) tooLarge() error {
	return status.Errorf(codes.ResourceExhausted,
		"the response would be larger than %d bytes: ask for fewer clients with node_matchers, set exclude_resource_contents, or raise limits.max_message_bytes in hdsd's configuration and restart it", s.maxBytes)
}
