package union

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	"hdsd/peer/access"
)

// askLeader asks the leader. It is not ok if there is no other leader, or it does not answer: then this replica
// has to.
func askLeader[Value any](ctx context.Context, b *Backend, q question) (value Value, ok bool, err error) {
	leader, ok := b.peers.Leader()
	if !ok {
		return value, false, nil
	}
	q.Leader = true
	var text []byte
	late := api.Aside(ctx, func() error {
		text, err = b.ask(ctx, leader, q)
		return ctx.Err()
	})
	if late != nil {
		return value, true, late
	}
	if err == nil {
		err = decode(text, &value)
	}
	b.heard(leader, err)
	return value, err == nil || isFinal(err), err
}

// heard notes whether a replica answered a question.
func (b *Backend) heard(replica string, err error) {
	if err == nil || isFinal(err) {
		b.silent.end(replica)
	} else if b.silent.recent(replica) == nil {
		b.silent.note(replica, err)
	}
}

// ask asks a replica, for as long as this one has patience.
func (b *Backend) ask(ctx context.Context, replica string, q question) ([]byte, error) {
	if err := b.silent.recent(replica); err != nil {
		return nil, err
	}
	q.Visible = encodeVisible(access.FromContext(ctx).Clusters())
	text, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("encoding a question: %w", err)
	}
	if len(text) > MaxQuestion {
		return nil, status.Errorf(codes.ResourceExhausted, "the question has %d bytes, and another replica takes %d", len(text), MaxQuestion)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, patience, errImpatient)
	defer cancel()
	found, err := b.peers.Ask(waiting, replica, text)
	if cause := context.Cause(waiting); err != nil && cause != nil {
		err = cause
	}
	return found, err
}

// errImpatient is the reason why a replica is not waited for any longer.
var errImpatient = fmt.Errorf("it has not answered for %v", patience)

// decode reads an answer into the value that a pointer is to.
func decode(text []byte, value any) error {
	if len(text) > MaxAnswer {
		return fmt.Errorf("the answer has %d bytes, more than %d", len(text), MaxAnswer)
	}
	a := answer{Value: value}
	if err := json.Unmarshal(text, &a); err != nil {
		return fmt.Errorf("reading an answer: %w", err)
	}
	if a.Failure != nil {
		return a.Failure.err()
	}
	if v, ok := value.(interface{ check() error }); ok {
		return v.check()
	}
	return nil
}

// given is the answer of one replica.
type given[Value any] struct {
	replica string
	value   Value
	err     error
}

// askAll asks all other replicas at the same time.
func askAll[Value any](ctx context.Context, b *Backend, q question) ([]given[Value], error) {
	others := b.peers.Others()
	all, texts := make([]given[Value], len(others)), make([][]byte, len(others))
	err := api.Aside(ctx, func() error {
		var asking sync.WaitGroup
		for i, replica := range others {
			all[i].replica = replica
			asking.Go(func() { texts[i], all[i].err = b.ask(ctx, replica, q) })
		}
		asking.Wait()
		return ctx.Err()
	})
	for i := range all {
		if err != nil {
			break
		}
		if all[i].err == nil {
			all[i].err = decode(texts[i], &all[i].value)
		}
		b.heard(all[i].replica, all[i].err)
	}
	return all, err
}

// rest is the time for which no question waits for a replica that has not answered one.
const rest = time.Second

// silences are the replicas that do not answer.
type silences struct {
	mu  sync.Mutex
	all map[string]*silence
}

// silence is a replica that does not answer.
type silence struct {
	since, latest time.Time
	err           error // the latest
}

// note notes that a replica did not answer a question.
func (s *silences) note(replica string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.all[replica] == nil {
		s.all[replica] = &silence{since: now}
	}
	s.all[replica].latest, s.all[replica].err = now, err
}

// end notes that a replica answered.
func (s *silences) end(replica string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, replica)
}

// recent returns the error of a replica that did not answer a moment ago, or nil.
func (s *silences) recent(replica string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if current := s.all[replica]; current != nil && time.Since(current.latest) < rest {
		return current.err
	}
	return nil
}

// since returns the start of the time in which a replica does not answer; zero if it does.
func (s *silences) since(replica string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if current := s.all[replica]; current != nil {
		return current.since
	}
	return time.Time{}
}
