package relay

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/envoy/fields"
	"hdsd/internal/wire"
	"hdsd/peer/access"
	"hdsd/peer/limit"
	"hdsd/peer/limit/inflight"
	"hdsd/relay/message"
)

// stream is a stream of a client, with its stream to the control plane.
type stream struct {
	server *Server
	client grpc.ServerStream // to the client
	opened time.Time
	method method
	caller string          // key of the caller
	ctx    context.Context // ends with the stream; nil: never

	upstream grpc.ClientStream // to the control plane; nil while that is away. Set before the goroutines start
	leave    func(failed bool)

	nodeHash [sha256.Size]byte // hash of the latest node of a request. firstRequest, then requests uses it
	inbox    chan arrival      // responses of the control plane
	wake     chan struct{}     // there may be something to push
	failure  chan error
	places   places

	mu         sync.Mutex // guards the fields below
	node       [sha256.Size]byte
	nodeID     string
	ledgers    [kinds]*ledger // nil: there was no request and no response of the type
	types      map[string]*typeStatus
	seenChange uint64 // number of the next of server.changes
}

// arrival is a response of the control plane.
type arrival struct {
	typeURL string
	wire    []byte
	place   *place // nil: it needs no room
}

// run relays until the stream ends.
func (st *stream) run() error {
	ctx, cancel := context.WithCancel(st.client.Context())
	defer cancel()
	st.ctx = ctx
	first, head, err := st.firstRequest(ctx)
	if err != nil {
		return err
	}
	responses := st.responses
	if st.upstream, st.leave, err = st.server.upstream.open(ctx, &st.method, st.server.forwarded(st.client.Context())); err != nil {
		if ctx.Err() == nil {
			st.server.metrics.failures.Inc()
		}
		if st.method.loads || !st.server.memory.knows(st.node, st.method.delta) || ctx.Err() != nil {
			return err
		}
		cause := err
		st.leave, responses = func(bool) {}, func(ctx context.Context) error { return st.offline(ctx, cause) }
	}
	var running sync.WaitGroup
	gate := st.server.gate
	spawn := func(run func()) {
		running.Add(1)
		gate.Go(func() { defer running.Done(); run() })
	}
	st.server.add(st) // before the goroutines look at health: else a change in between would wake nobody
	spawn(func() { st.fail(st.requests(ctx, first, head, spawn)) })
	spawn(func() { st.fail(responses(ctx)) })
	spawn(func() { st.fail(st.send(ctx)) })
	select {
	case err = <-st.failure:
	case <-ctx.Done(): // the client has gone, or its authority is withdrawn
		err = status.FromContextError(ctx.Err()).Err()
	case <-gate.Closing():
		err = errClosing
	}
	cancel()
	gate.Go(func() { // the goroutines end once this handler has returned
		running.Wait()
		st.server.remove(st)
		st.leave(status.Code(err) == codes.Unavailable)
		st.close()
		st.releaseAll()
	})
	return err
}

// room takes room for claimed names. The stream ends if other callers need the room more.
func (st *stream) room(names int64) (*limit.Lease, error) {
	if pool := st.server.options.Names; pool != nil {
		return pool.Take(st.caller, names, st.fail)
	}
	return nil, nil
}

// close closes the ledgers.
func (st *stream) close() {
	st.mu.Lock()
	defer st.mu.Unlock()
	var names []string // of assignments
	for _, l := range st.ledgers {
		if l == nil {
			continue
		}
		if l.key.kind == assignments {
			names = l.names()
		}
		l.close()
		st.server.nodes.leave(st, l)
	}
	// After the ledgers: the node may have another version of a cluster by now.
	for _, name := range names {
		st.server.memory.updateNodePanels(st.server, st.node, name)
	}
}

func (st *stream) fail(err error) {
	select {
	case st.failure <- err:
	default:
	}
}

// firstRequest waits for the first request, and checks its node against the caller's identity.
func (st *stream) firstRequest(ctx context.Context) (wire []byte, head message.Head, err error) {
	type received struct {
		wire []byte
		err  error
	}
	got := make(chan received, 1)
	st.server.gate.Go(func() {
		wire, err := st.receive()
		got <- received{wire, err}
	})
	timer := time.NewTimer(st.server.options.FirstRequestTimeout)
	defer timer.Stop()
	select {
	case r := <-got:
		if r.err == nil {
			head, r.err = st.readHead(r.wire, true)
		}
		return r.wire, head, r.err
	case <-timer.C:
		err = status.Errorf(codes.DeadlineExceeded, "no request within %v: send one", st.server.options.FirstRequestTimeout)
	case <-st.server.gate.Closing():
		err = errClosing
	case <-ctx.Done():
		err = status.FromContextError(ctx.Err()).Err()
	}
	return nil, head, err
}

// maxNode limits the size of a node in bytes.
const maxNode = 64 << 10

// readHead reads the head of a request. It checks the node of the first request, and each other node of a later
// one, against the caller's identity: the control plane may take any of them for the client.
func (st *stream) readHead(wire []byte, first bool) (head message.Head, err error) {
	if len(wire) > smallWork { // it may have many fields
		end, err := st.turn(len(wire))
		if err != nil {
			return head, status.FromContextError(err).Err()
		}
		defer end()
	}
	head, err = message.HeadOf(st.method.delta, wire)
	if err != nil {
		return head, status.Errorf(codes.InvalidArgument, "a request cannot be decoded: %v", err)
	}
	hash := sha256.Sum256(head.Node)
	if !first && (len(head.Node) == 0 || hash == st.nodeHash) {
		return head, nil
	}
	node := &corev3.Node{}
	if len(head.Node) > maxNode {
		return head, status.Errorf(codes.InvalidArgument, "the node of a request may have up to %d bytes", maxNode)
	}
	if err := proto.Unmarshal(head.Node, node); err != nil {
		return head, status.Errorf(codes.InvalidArgument, "the node cannot be decoded: %v", err)
	}
	if err := envoy.CheckNode(node); err != nil {
		return head, status.Error(codes.InvalidArgument, err.Error())
	}
	if st.nodeHash = hash; first {
		st.mu.Lock()
		st.nodeID, st.node = node.GetId(), st.server.keyOf(st.client.Context(), node)
		st.mu.Unlock()
	}
	locality := node.GetLocality()
	return head, access.FromContext(st.client.Context()).Admit(access.Node{ID: node.GetId(), Region: locality.GetRegion(), Zone: locality.GetZone()})
}

func (st *stream) receive() ([]byte, error) {
	var m wire.Bytes
	err := st.client.RecvMsg(&m)
	return m, err
}

// requests passes on the first request and those that follow it, until the client sends no more.
func (st *stream) requests(ctx context.Context, m []byte, head message.Head, spawn func(func())) error {
	upstream := newNACKs(st.writer(st.upstream, codes.Unavailable, "the control plane behind the relay"), spawn)
	for {
		var err error
		if m, err = st.request(m, &head); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return status.Errorf(codes.InvalidArgument, "a request cannot be decoded: %v", err)
		}
		if m != nil && st.upstream != nil && upstream.write(ctx, &head, m) != nil {
			<-ctx.Done() // responses returns the error
			return nil
		}
		if m, err = st.receive(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if head, err = st.readHead(m, false); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// request returns a request for the control plane; nil: the control plane gets none. It changes the head in the
// same way.
func (st *stream) request(m []byte, head *message.Head) ([]byte, error) {
	if st.method.loads {
		st.server.metrics.loads.Inc()
		*head = message.Head{}
		return m, nil
	}
	if head.TypeURL == "" && st.method.typeURL != "" { // a service of one type implies it
		head.TypeURL = st.method.typeURL
		m = fields.AppendText(slices.Clip(m), message.RequestType(st.method.delta), head.TypeURL)
	}
	st.note(head)
	k, relayed := kindOf(head.TypeURL)
	if !relayed {
		return m, nil
	}
	end, err := st.turn(len(m))
	if err != nil {
		return nil, err
	}
	defer end()
	r, err := message.ParseRequest(st.method.delta, m)
	if err != nil {
		return nil, err
	}
	siblings := st.siblings(k, r)
	st.mu.Lock()
	defer st.mu.Unlock()
	defer st.wakeUp() // a push may have waited for the answer
	l := st.ledger(k)
	first := !l.requested
	if l.isOwn(r.Nonce) { // the control plane does not get the answer
		head.Refusal = nil
	}
	request, err := l.request(r, m, siblings)
	if err == nil && st.upstream == nil {
		l.recall(r, first)
	}
	return request, err
}

// ledger returns the ledger of a type. The caller holds mu.
func (st *stream) ledger(k kind) *ledger {
	if st.ledgers[k] == nil {
		st.ledgers[k] = newLedger(k, st.method.delta, st.node, st.server.memory, st.server.newNoncePrefix(), st.room)
		st.ledgers[k].caller = st.caller
		st.ledgers[k].links = links{server: st.server, stream: st}
		st.server.nodes.join(st, st.ledgers[k])
	}
	return st.ledgers[k]
}

func (st *stream) wakeUp() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// writer returns a writer to a peer. If the peer does not read, the stream ends.
func (st *stream) writer(target interface{ SendMsg(message any) error }, code codes.Code, peer string) *writer {
	timeout := st.server.options.WriteTimeout
	return newWriter(target, timeout, func() { st.fail(status.Errorf(code, "%s has not read for %v", peer, timeout)) })
}

// responses receives the responses of the control plane, one at a time. It asks for a large response when there is
// room for it. Until then, HTTP/2 makes the control plane wait.
func (st *stream) responses(ctx context.Context) error {
	arrivals := inflight.Follow(st.upstream)
	for received := false; ; received = true {
		size, err := arrivals.Next(ctx)
		if err != nil {
			return nil //nolint:nilerr // the stream has ended
		}
		p, err := st.begin(ctx, size)
		if err != nil {
			return nil //nolint:nilerr // the stream has ended
		}
		var m wire.Bytes
		if err := st.upstream.RecvMsg(&m); err != nil {
			if !received && ctx.Err() == nil {
				st.server.metrics.failures.Inc()
			}
			if errors.Is(err, io.EOF) {
				return errEnded
			}
			return err
		}
		if size == 0 { // unknown until now
			if p, err = st.begin(ctx, len(m)); err != nil {
				return nil //nolint:nilerr // the stream has ended
			}
		}
		select {
		case st.inbox <- arrival{message.TypeOf(m), m, p}:
		case <-ctx.Done():
			return nil
		}
	}
}

// send writes the responses of the control plane and those of hdsd to the client. While the client does not read,
// the stream receives nothing.
func (st *stream) send(ctx context.Context) error {
	client := st.writer(st.client, codes.DeadlineExceeded, "the client")
	write := func(a *encoded) error {
		err := client.write(ctx, a.parts...)
		if err == nil && ctx.Err() == nil { // else grpc may still use a part of it
			st.release(a.place)
		}
		return err
	}
	pass := func(arrivals ...arrival) error {
		for i := range arrivals {
			a, err := st.response(ctx, arrivals[i])
			if arrivals[i].wire = nil; err == nil { // frees one of two copies during the write
				err = write(a)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	room := &pushRoom{st: st}
	defer room.drop()
	var early []arrival
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case m := <-st.inbox:
			if st.isEarly(m) && len(early) < maxEarly {
				if early = append(early, m); len(early) == 1 {
					timer.Reset(earlyTimeout)
				}
				continue
			}
			if st.isEarly(m) { // too many are early
				early = append(early, m)
			} else if err := pass(m); err != nil {
				return err
			} else if st.isEarly(early...) {
				continue
			}
			if err := pass(early...); err != nil {
				return err
			}
			early = nil
		case <-timer.C:
			if err := pass(early...); err != nil {
				return err
			}
			early = nil
		case <-st.wake:
			for {
				a, err := st.push(room)
				if err == nil && a != nil {
					err = write(a)
				}
				if err != nil {
					return err
				}
				if a == nil {
					break
				}
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// Early responses wait for the clusters that the client has asked for: hdsd does not know the health of assignments
// without clusters. maxEarly responses wait for earlyTimeout.
const (
	earlyTimeout = 300 * time.Millisecond
	maxEarly     = 4
)

// isEarly reports whether the first response has assignments, and the clusters that the client has asked for have not
// come.
func (st *stream) isEarly(arrivals ...arrival) bool {
	if len(arrivals) == 0 {
		return false
	}
	if k, relayed := kindOf(arrivals[0].typeURL); !relayed || k != assignments {
		return false
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	asked := st.ledgers[clusters]
	return asked != nil && !asked.responded
}
