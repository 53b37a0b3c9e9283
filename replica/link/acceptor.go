package link

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	replicav1 "hdsd/gen/hdsd/replica/v1"
)

// memberPatience is how long a call waits until SetMembers brings its replica.
const memberPatience = 3 * time.Second

// acceptor accepts the calls of other replicas.
type acceptor struct {
	replicav1.UnimplementedLinksServer
	links *Links
}

// Link implements replicav1.LinksServer. When it returns, gRPC ends the stream, and with it Recv and Send.
func (a *acceptor) Link(s replicav1.Links_LinkServer) error {
	l := a.links
	f, err := l.firstFrame(s)
	if err != nil {
		return err
	}
	hello, err := l.options.helloOf(f)
	if err != nil {
		return err
	}
	if err := l.options.checkCaller(hello); err != nil {
		return err
	}
	if err := l.awaitMember(s.Context(), hello.GetId()); err != nil {
		return err
	}
	if err := s.Send(l.options.hello("")); err != nil {
		return err
	}
	k, err := l.open(hello, s)
	if err != nil {
		return status.Errorf(codes.Unavailable, "replica %s ends the link: %v", l.options.ID, err)
	}
	<-k.ending
	if _, ok := status.FromError(k.err); ok {
		return k.err
	}
	return status.Errorf(codes.Unavailable, "replica %s ends the link: %v", l.options.ID, k.err)
}

// firstFrame returns the first frame of a stream, if it comes in time.
func (l *Links) firstFrame(s stream) (*replicav1.Frame, error) {
	if !l.enter() {
		return nil, l.stopping()
	}
	type result struct {
		frame *replicav1.Frame
		err   error
	}
	received := make(chan result, 1)
	go func() {
		defer l.tasks.Done()
		f, err := s.Recv()
		received <- result{f, err}
	}()
	select {
	case r := <-received:
		return r.frame, r.err
	case <-time.After(helloPatience):
		return nil, status.Errorf(codes.DeadlineExceeded, "replica %s awaits the hello of a replica within %v", l.options.ID, helloPatience)
	case <-l.ctx.Done():
		return nil, l.stopping()
	}
}

// stopping returns the error of calls to a replica that stops.
func (l *Links) stopping() error {
	return status.Errorf(codes.Unavailable, "replica %s stops", l.options.ID)
}

// awaitMember waits until SetMembers has brought a replica.
func (l *Links) awaitMember(ctx context.Context, id string) error {
	timeout := time.After(memberPatience)
	for {
		l.mu.Lock()
		present, changed := l.members[id] != nil, l.changed
		l.mu.Unlock()
		if present {
			return nil
		}
		select {
		case <-changed:
		case <-timeout:
			return status.Errorf(codes.Unavailable, "replica %s sees no session of replica %s in etcd: if this stays, compare replication.etcd of both", l.options.ID, id)
		case <-ctx.Done():
			return ctx.Err()
		case <-l.ctx.Done():
			return l.stopping()
		}
	}
}
