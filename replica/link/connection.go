package link

import (
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/replica"
)

// stream is either end of a gRPC stream.
type stream interface {
	Send(f *replicav1.Frame) error
	Recv() (*replicav1.Frame, error)
}

// connection is the link to a replica, from its hello on.
type connection struct {
	replica string
	process uint64 // of the other replica
	version string // of the other program
	number  uint64
	stream  stream
	queue   chan replica.Message // has room for one

	once   sync.Once
	ending chan struct{} // closes when the link is to end
	err    error         // why; set before ending closes
	ended  chan struct{} // closes after LinkClosed
}

// end lets the link end, if there is one. Only the first reason counts. The owner of the stream ends that then, which
// ends the goroutines.
func (k *connection) end(err error) {
	if k == nil {
		return
	}
	k.once.Do(func() {
		k.err = err
		close(k.ending)
	})
}

// open makes a link of a stream, instead of an earlier link to the same replica. When ending closes, the caller ends the
// stream.
func (l *Links) open(h *replicav1.Hello, s stream) (*connection, error) {
	k := &connection{
		replica: h.GetId(), process: h.GetProcess(), version: h.GetVersion(), stream: s, queue: make(chan replica.Message, 1),
		ending: make(chan struct{}), ended: make(chan struct{}),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	if l.members[k.replica] == nil {
		return nil, errNoMember
	}
	l.number++
	k.number = l.number
	previous := l.links[k.replica]
	l.links[k.replica] = k
	l.tasks.Go(func() { l.carry(k, previous) })
	return k, nil
}

// carry posts the events of a link, in their order.
func (l *Links) carry(k, previous *connection) {
	if previous != nil {
		previous.end(errReplaced)
		<-previous.ended
	}
	l.note(k.replica, func(s *Status) { *s = Status{Connected: true, Since: time.Now(), Version: k.version} })
	l.metrics.links.Inc()
	l.options.Log.Info().Str("event", "replica_link_opened").Str("replica", k.replica).Str("replica_version", k.version).
		Msg("the link to another replica is open")
	l.post(replica.LinkOpened{Replica: k.replica, Link: k.number})
	var both sync.WaitGroup
	both.Go(func() { l.send(k) })
	both.Go(func() { l.receive(k) })
	both.Wait()
	l.note(k.replica, func(s *Status) { s.Connected, s.Since, s.Err = false, time.Now(), reason(k.err).Error() })
	l.metrics.links.Dec()
	if !errors.Is(k.err, errClosed) {
		l.options.Log.Warn().Str("event", "replica_link_ended").Str("replica", k.replica).Err(reason(k.err)).
			Msg("the link to another replica has ended")
	}
	l.post(replica.LinkClosed{Replica: k.replica, Link: k.number})
	l.forget(k)
	close(k.ended)
}

// forget forgets a link after its last event, so that the next one waits for that.
func (l *Links) forget(k *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.links[k.replica] == k {
		delete(l.links, k.replica)
	}
}

// send sends messages until the link ends.
func (l *Links) send(k *connection) {
	for {
		var m replica.Message
		select {
		case <-k.ending:
			return
		case m = <-k.queue:
		}
		f, err := encode(m)
		if err != nil {
			k.end(err)
			return
		}
		l.metrics.sent.count(f)
		if err := k.stream.Send(f); errors.Is(err, io.EOF) {
			return // receive gets the reason
		} else if err != nil {
			k.end(err)
			return
		}
		l.post(replica.Sent{Replica: k.replica, Link: k.number})
	}
}

// receive receives messages until the link ends.
func (l *Links) receive(k *connection) {
	for {
		f, err := k.stream.Recv()
		if err != nil {
			k.end(err)
			return
		}
		l.metrics.received.count(f)
		m, err := l.decoder.decode(f)
		if err == nil {
			err = checkReport(f.GetReport(), k.process)
		}
		if err != nil {
			k.end(status.Errorf(codes.InvalidArgument, "replica %s (version %s) cannot read a message of this replica: %v; upgrade the older one of the two", l.options.ID, l.options.Version, err))
			return
		}
		select {
		case <-k.ending:
			return
		default:
		}
		l.post(replica.Received{Replica: k.replica, Link: k.number, Message: m})
	}
}

// reason returns the reason of the end of a link or a call for people.
func reason(err error) error {
	s, ok := status.FromError(err)
	switch {
	case errors.Is(err, io.EOF) || ok && s.Code() == codes.Canceled:
		return errors.New("the other replica has ended the link, or its connection is lost")
	case ok:
		return errors.New(s.Message())
	}
	return err
}
