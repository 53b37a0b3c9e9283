package eds

import (
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/envoy"
	"hdsd/peer"
	"hdsd/peer/access"
	"hdsd/peer/limit"
)

// stream is one client's stream, of one type or of all.
type stream struct {
	server    *Server
	grpc      grpc.ServerStream
	id        uint64
	delta     bool
	table     *table          // nil: the stream is aggregated
	permitted access.Clusters // clusters that exist for the client
	start     time.Time

	names *limit.Lease // names of missing resources; nil: unbounded

	wake chan struct{} // holds one signal: there may be something to send
	end  chan error    // the first error ends the stream

	nonces     uint64 // owned by the sending goroutine
	introduced bool   // the first request has arrived; owned by the receiving goroutine

	mu       sync.Mutex
	node     *corev3.Node // the kept part; nil until the client sends it
	nodeID   string
	features features         // of that node
	subs     [2]*subscription // in the order of the server's tables

	unserved map[string]int // types that are not served, and the number of names in the latest request
}

// caller returns the name of the stream's caller.
func (st *stream) caller() string { return limit.Name(peer.FromContext(st.grpc.Context()).Key()) }

// name returns the client's node id; empty before the first request.
func (st *stream) name() string {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.nodeID
}

// takeNames begins the count of names. If others need room, the stream ends.
func (st *stream) takeNames() (err error) {
	if st.server.names != nil {
		st.names, err = st.server.names.Take(peer.FromContext(st.grpc.Context()).Key(), 0, st.fail)
	}
	return err
}

// wakeUp makes the sending goroutine look for something to send.
func (st *stream) wakeUp() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

func (st *stream) fail(err error) {
	select {
	case st.end <- err:
	default:
	}
}

// send writes responses until the stream ends. A write that takes longer than
// the deadline ends it: the client does not read.
func (st *stream) send() {
	timeout := st.server.writeTimeout
	stuck := time.AfterFunc(timeout, func() {
		st.server.recorder.stuck(st)
		st.fail(status.Errorf(codes.DeadlineExceeded, "the client has not read for %v", timeout))
	})
	stuck.Stop()
	for {
		select {
		case <-st.wake:
		case <-st.grpc.Context().Done():
			return
		}
		for {
			u, r := st.next()
			if r == nil {
				break
			}
			stuck.Reset(timeout)
			err := st.grpc.SendMsg(r)
			stuck.Stop()
			if err != nil {
				st.fail(err)
				return
			}
			delay := time.Duration(0)
			if r.oldest != 0 {
				delay = time.Duration(st.server.published.now() - r.oldest)
			}
			st.server.recorder.sent(u.table, r.size, delay)
		}
	}
}

// next returns the next response of the stream; clusters come before assignments.
func (st *stream) next() (*subscription, *response) {
	st.mu.Lock()
	subs := st.subs
	st.mu.Unlock()
	for _, u := range subs {
		if u == nil {
			continue
		}
		if !st.server.admission.admit(u) {
			continue
		}
		if r := u.next(st.nonce, st.server.maxResponseBytes); r != nil {
			st.warm(u)
			return u, r
		}
		st.server.admission.idle(u)
	}
	return nil, nil
}

func (st *stream) nonce() string {
	st.nonces++
	var room [41]byte
	text := append(strconv.AppendUint(room[:0], st.id, 10), '.')
	return string(strconv.AppendUint(text, st.nonces, 10))
}

// receive handles requests until the stream ends. The first request stops the timer.
func (st *stream) receive(first *time.Timer) {
	defer st.leave()
	read := st.reader()
	for {
		r, err := read()
		if first.Stop(); err == nil {
			err = st.introduce(r)
		}
		if err == nil {
			err = st.process(r)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			continue
		}
		st.fail(err)
		return
	}
}

// leave ends all subscriptions. Nothing subscribes after it.
func (st *stream) leave() {
	st.mu.Lock()
	subs := st.subs
	st.subs = [2]*subscription{}
	st.mu.Unlock()
	for _, u := range subs {
		if u != nil {
			u.end()
			st.server.recorder.subscribed(u.table, -1)
		}
	}
}

// reader returns a function that reads the next request, which is valid until the one after it.
func (st *stream) reader() func() (*request, error) {
	if st.delta {
		m := st.newDeltaMessage()
		return func() (*request, error) {
			m.reset()
			if err := m.receive(st.grpc.RecvMsg, m); err != nil {
				return nil, err
			}
			return st.deltaMessageRequest(m), nil
		}
	}
	m := st.newStateMessage()
	return func() (*request, error) {
		m.reset()
		if err := m.receive(st.grpc.RecvMsg, m); err != nil {
			return nil, err
		}
		return st.stateMessageRequest(m), nil
	}
}

// introduce checks the node of the first request against the caller's identity.
func (st *stream) introduce(r *request) error {
	if st.introduced {
		return nil
	}
	st.introduced = true
	if err := envoy.CheckNode(r.node); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return access.FromContext(st.grpc.Context()).Admit(accessNode(r.node))
}

// accessNode returns a client's node for package access.
func accessNode(n *corev3.Node) access.Node {
	return access.Node{ID: n.GetId(), Region: n.GetLocality().GetRegion(), Zone: n.GetLocality().GetZone()}
}

func (st *stream) process(r *request) error {
	u, err := st.subscription(r)
	if err != nil || u == nil {
		return err
	}
	return u.requests.process(r)
}

// subscription returns the subscription of the request's type, nil if the type is not served:
// such requests stay unanswered.
func (st *stream) subscription(r *request) (*subscription, error) {
	if r.typeURL == "" {
		return nil, status.Error(codes.InvalidArgument, "type_url is needed on an aggregated stream")
	}
	if st.table != nil && r.typeURL != st.table.typeURL {
		return nil, errOtherType(st.table)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.node == nil && r.node != nil { // only the first message has a node
		st.features, st.nodeID = featuresOf(r.node), brief(r.node.GetId())
		st.node = keptNode(r.node)
	}
	for i, t := range st.server.published.tables() {
		if t.typeURL != r.typeURL {
			continue
		}
		if st.subs[i] == nil {
			st.subs[i] = newSubscription(st, t)
			st.server.recorder.subscribed(t, 1)
		}
		return st.subs[i], nil
	}
	st.park(r)
	return nil, nil
}

// pair returns the subscriptions of clusters and of assignments, or nil.
func (st *stream) pair() (clusters, assignments *subscription) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.subs[0], st.subs[1]
}

// subscriptions returns the existing subscriptions, in the order in which changes are sent.
func (st *stream) subscriptions() (subs []*subscription) {
	clusters, assignments := st.pair()
	for _, u := range []*subscription{clusters, assignments} {
		if u != nil {
			subs = append(subs, u)
		}
	}
	return subs
}
