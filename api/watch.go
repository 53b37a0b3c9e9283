package api

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

// WatchQuery narrows a watch; zero fields do not.
type WatchQuery struct {
	Cluster string
	Address string
	Token   string // to resume after; empty: start with the current health
}

// Watcher is one watch. One goroutine uses it.
type Watcher interface {
	// Next waits for events. If it returns ctx's error, nothing is lost: call it again.
	Next(ctx context.Context) ([]Sight, error)

	// Close ends watching.
	Close()
}

// Sight is one event of a watch: the health of an endpoint, then Synced once all
// endpoints were sent, then changes.
type Sight struct {
	Endpoint *EndpointHealth
	Synced   bool
	Change   *Change
	Token    string // to resume after this event; empty before Synced
}

// Change is a transition that many watchers share. It is encoded once for all.
type Change struct {
	Token      string
	Transition health.Transition

	once    sync.Once
	message *hdsdv1.Transition
	event   []byte // server-sent
	err     error
}

func (c *Change) encoded() (message *hdsdv1.Transition, event []byte, err error) {
	c.once.Do(func() {
		c.message = transitionMessage(c.Transition)
		var text []byte
		text, c.err = compactJSON(c.message)
		c.event = appendEvent(nil, "transition", c.Token, text)
	})
	return c.message, c.event, c.err
}

// Watch sends the current health of endpoints, then each change.
func (s *Service) Watch(r *hdsdv1.WatchRequest, stream grpc.ServerStreamingServer[hdsdv1.WatchResponse]) error {
	watcher, err := s.backend.Watch(stream.Context(), WatchQuery{Cluster: r.GetCluster(), Address: r.GetAddress(), Token: r.GetResumeToken()})
	if err != nil {
		return watchError(err, "resume_token")
	}
	defer watcher.Close()
	if err := stream.SendHeader(nil); err != nil { // tells the client at once that the watch has started
		return err
	}
	for {
		sights, err := watcher.Next(stream.Context())
		if err != nil {
			return grpcError(err)
		}
		for i := range sights {
			message, err := sights[i].message()
			if err != nil {
				return grpcError(err)
			}
			if err := stream.Send(message); err != nil {
				return err
			}
		}
	}
}

// watchError is grpcError, but for a bad token it names the parameter.
func watchError(err error, parameter string) error {
	if errors.Is(err, ErrBadToken) {
		return status.Errorf(codes.InvalidArgument, "%s is not a token that this history gave out: watch again without it", parameter)
	}
	return grpcError(err)
}

func (s *Sight) message() (*hdsdv1.WatchResponse, error) {
	m := &hdsdv1.WatchResponse{Token: s.Token}
	switch {
	case s.Endpoint != nil:
		m.Event = &hdsdv1.WatchResponse_Endpoint{Endpoint: endpointMessage(*s.Endpoint)}
	case s.Synced:
		m.Event = &hdsdv1.WatchResponse_Synced{Synced: &hdsdv1.Synced{}}
	default:
		transition, _, err := s.Change.encoded()
		if err != nil {
			return nil, err
		}
		m.Event = &hdsdv1.WatchResponse_Transition{Transition: transition}
	}
	return m, nil
}
