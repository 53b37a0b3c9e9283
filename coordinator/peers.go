package coordinator

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/replica/link"
)

// copyPart is the size of the parts of a copy of the database, in bytes.
const copyPart = 1 << 20

// peers has the connections for questions to other replicas.
type peers struct {
	credentials credentials.TransportCredentials

	mu          sync.Mutex
	connections map[string]*peerConnection // by id of the replica; guarded by mu
	closed      bool                       // guarded by mu
}

// peerConnection is the connection to a replica.
type peerConnection struct {
	*grpc.ClientConn
	address string
}

func newPeers(c credentials.TransportCredentials) *peers {
	return &peers{credentials: c, connections: map[string]*peerConnection{}}
}

// setMembers keeps connections to these addresses, by the ids of the replicas. They connect when there is a question.
func (p *peers) setMembers(addresses map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, m := range p.connections {
		if addresses[id] != m.address || p.closed {
			_ = m.Close() // questions end with an error
			delete(p.connections, id)
		}
	}
	for id, address := range addresses {
		if p.connections[id] != nil || p.closed {
			continue
		}
		conn, err := link.Dial(address, p.credentials)
		if err != nil { // an address that gRPC cannot parse: there is no question to it
			continue
		}
		p.connections[id] = &peerConnection{conn, address}
	}
}

// Ask implements union.Peers.
func (p *peers) Ask(ctx context.Context, replica string, question []byte) ([]byte, error) {
	p.mu.Lock()
	m := p.connections[replica]
	p.mu.Unlock()
	if m == nil {
		return nil, status.Errorf(codes.Unavailable, "replica %s has no session", replica)
	}
	answer, err := replicav1.NewPeersClient(m.ClientConn).Ask(ctx, &replicav1.AskRequest{Question: question})
	return answer.GetAnswer(), err
}

// close closes the connections.
func (p *peers) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.setMembers(nil)
}

// peerService answers the questions of other replicas.
type peerService struct {
	replicav1.UnimplementedPeersServer
	replicas *replicas
	copies   chan struct{} // holds a value for each copy in progress
}

// maxCopies bounds the copies in progress, since each has a file on this disk.
const maxCopies = 4

func newPeerService(r *replicas) peerService {
	return peerService{replicas: r, copies: make(chan struct{}, maxCopies)}
}

// Ask implements replicav1.PeersServer.
func (s peerService) Ask(ctx context.Context, r *replicav1.AskRequest) (*replicav1.AskResponse, error) {
	answer, err := s.replicas.union.Answer(ctx, r.GetQuestion())
	return &replicav1.AskResponse{Answer: answer}, err
}

// Copy implements replicav1.PeersServer.
func (s peerService) Copy(r *replicav1.CopyRequest, stream grpc.ServerStreamingServer[replicav1.CopyResponse]) error {
	if own := s.replicas.store.Cursor(); own.Fleet != r.GetFleet() || own.Diverged || own.Sequence == 0 {
		return status.Errorf(codes.FailedPrecondition, "replica %s has no database of fleet %q yet", s.replicas.config.GetNodeId(), r.GetFleet())
	}
	select {
	case s.copies <- struct{}{}:
		defer func() { <-s.copies }()
	default:
		return status.Errorf(codes.ResourceExhausted, "replica %s sends %d copies already", s.replicas.config.GetNodeId(), maxCopies)
	}
	start := time.Now()
	file, err := s.replicas.store.Copy(stream.Context())
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := sendFile(file, stream)
	if err == nil {
		s.replicas.log.Info().Str("event", "replica_copied").Int64("bytes", size).Dur("took", time.Since(start)).Msg("another replica took a copy of the database")
	}
	return err
}

const (
	// partPatience is the longest time for a part of a copy. A replica that takes nothing must not keep others from theirs.
	partPatience = 30 * time.Second

	// firstPatience is the longest time for the first part, before which the other replica makes its copy.
	firstPatience = 10 * time.Minute
)

// sendPart sends a part of a copy.
func sendPart(part []byte, stream grpc.ServerStreamingServer[replicav1.CopyResponse]) error {
	sent := make(chan error, 1)
	go func() { sent <- stream.Send(&replicav1.CopyResponse{Data: part}) }() // ends with the call
	select {
	case err := <-sent:
		return err
	case <-time.After(partPatience):
		return status.Errorf(codes.DeadlineExceeded, "the next part of the copy has waited for %v for the replica to take it", partPatience)
	}
}

// sendFile sends a file in parts.
func sendFile(file *os.File, stream grpc.ServerStreamingServer[replicav1.CopyResponse]) (size int64, err error) {
	for {
		part := make([]byte, copyPart)
		n, err := io.ReadFull(file, part)
		if n > 0 {
			if err := sendPart(part[:n], stream); err != nil {
				return size, err
			}
			size += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return size, nil
		case err != nil:
			return size, err
		}
	}
}

// copyReader reads the parts of a copy.
type copyReader struct {
	stream grpc.ServerStreamingClient[replicav1.CopyResponse]
	cancel func(error) // of the stream
	rest   []byte
}

// Read implements io.Reader.
func (c *copyReader) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		part, err := c.next(partPatience)
		if err != nil {
			return 0, err
		}
		c.rest = part
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// next reads the next part, which may take some time.
func (c *copyReader) next(patience time.Duration) ([]byte, error) {
	timer := time.AfterFunc(patience, func() { c.cancel(errStalled) })
	defer timer.Stop()
	part, err := c.stream.Recv()
	if cause := context.Cause(c.stream.Context()); err != nil && errors.Is(cause, errStalled) {
		err = cause
	}
	return part.GetData(), err
}

var errStalled = errors.New("the replica does not go on with the copy")
