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

// stream is the stream of a client, and the one to the control plane that belongs to it.
type stream struct {
	server *Server
	down   grpc.ServerStream // to the client
	since  time.Time
	method method
	caller string          // its key
	life   context.Context // ends when the stream ends; nil: it does not

	up    grpc.ClientStream // to the control plane; nil while that is away. Set before the goroutines start
	leave func(failed bool)

	told   [sha256.Size]byte // the node that the client sent last. first, then requests owns it
	inbox  chan incoming     // one response of the control plane that is on its way
	wake   chan struct{}     // something may have to be pushed
	end    chan error
	places places

	mu      sync.Mutex // guards what follows
	node    [sha256.Size]byte
	nodeID  string
	ledgers [kinds]*ledger // nil: the client has not asked for the type
	talks   map[string]*talk
	seen    uint64 // of server.changes
}

// incoming is a response of the control plane.
type incoming struct {
	typeURL string
	wire    []byte
	place   *place // its room; nil: it needs none
}

// run relays until the stream ends.
func (st *stream) run() error {
	ctx, cancel := context.WithCancel(st.down.Context())
	defer cancel()
	st.life = ctx
	first, head, err := st.first(ctx)
	if err != nil {
		return err
	}
	responses := st.responses
	if st.up, st.leave, err = st.server.upstream.open(ctx, &st.method, st.server.forwarded(st.down.Context())); err != nil {
		if ctx.Err() == nil {
			st.server.metrics.failures.Inc()
		}
		if st.method.loads || !st.server.memory.knows(st.node, st.method.delta) || ctx.Err() != nil {
			return err
		}
		why := err
		st.leave, responses = func(bool) {}, func(ctx context.Context) error { return st.offline(ctx, why) }
	}
	var running sync.WaitGroup
	gate := st.server.gate
	spawn := func(run func()) {
		running.Add(1)
		gate.Go(func() { defer running.Done(); run() })
	}
	spawn(func() { st.fail(st.requests(ctx, first, head, spawn)) })
	spawn(func() { st.fail(responses(ctx)) })
	spawn(func() { st.fail(st.send(ctx)) })
	st.server.add(st)
	select {
	case err = <-st.end:
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

// room makes room for what the client claims to have. The stream ends if others need the room
// more.
func (st *stream) room(names int64) (*limit.Lease, error) {
	if pool := st.server.options.Names; pool != nil {
		return pool.Take(st.caller, names, st.fail)
	}
	return nil, nil
}

// close gives back what the client had.
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
	// Only now: a node may have brought another version of a cluster meanwhile.
	for _, name := range names {
		st.server.memory.regroup(st.server, st.node, name)
	}
}

func (st *stream) fail(err error) {
	select {
	case st.end <- err:
	default:
	}
}

// first waits for the first request, and holds its node against the caller's identity.
func (st *stream) first(ctx context.Context) (wire []byte, head message.Head, err error) {
	type received struct {
		wire []byte
		err  error
	}
	got := make(chan received, 1)
	st.server.gate.Go(func() {
		wire, err := st.receive()
		got <- received{wire, err}
	})
	late := time.NewTimer(st.server.options.FirstRequestTimeout)
	defer late.Stop()
	select {
	case r := <-got:
		if r.err == nil {
			head, r.err = st.introduce(r.wire, true)
		}
		return r.wire, head, r.err
	case <-late.C:
		err = status.Errorf(codes.DeadlineExceeded, "no request within %v: send one", st.server.options.FirstRequestTimeout)
	case <-st.server.gate.Closing():
		err = errClosing
	case <-ctx.Done():
		err = status.FromContextError(ctx.Err()).Err()
	}
	return nil, head, err
}

// maxNode is the size above which only the id of a node is read.
const maxNode = 64 << 10

// introduce reads the head of a request, and checks its node against the caller's identity: the
// node of the first request, and each other one that a later request gives. The control plane may
// take any of them for the client.
func (st *stream) introduce(wire []byte, first bool) (head message.Head, err error) {
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
	told := sha256.Sum256(head.Node)
	if !first && (len(head.Node) == 0 || told == st.told) {
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
	if st.told = told; first {
		st.mu.Lock()
		st.nodeID, st.node = node.GetId(), st.server.keyOf(st.down.Context(), node)
		st.mu.Unlock()
	}
	at := node.GetLocality()
	return head, access.FromContext(st.down.Context()).Admit(access.Node{ID: node.GetId(), Region: at.GetRegion(), Zone: at.GetZone()})
}

func (st *stream) receive() ([]byte, error) {
	var m wire.Bytes
	err := st.down.RecvMsg(&m)
	return m, err
}

// requests passes on the client's requests, the first of which it gets, until it has no more.
func (st *stream) requests(ctx context.Context, m []byte, head message.Head, spawn func(func())) error {
	up := newNACKs(st.writer(st.up, codes.Unavailable, "the control plane behind the relay"), spawn)
	for {
		var err error
		if m, err = st.request(m, &head); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return status.Errorf(codes.InvalidArgument, "a request cannot be decoded: %v", err)
		}
		if m != nil && st.up != nil && up.write(ctx, &head, m) != nil {
			<-ctx.Done() // responses returns the reason
			return nil
		}
		if m, err = st.receive(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if head, err = st.introduce(m, false); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// request returns a request as the control plane gets it; nil: it gets none. It changes the head in
// the same way.
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
	k, ours := kindOf(head.TypeURL)
	if !ours {
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
	defer st.wakeUp() // what waited for an answer may go out now
	l := st.ledger(k)
	first := !l.begun
	if l.isOwn(r.Nonce) { // the control plane hears nothing of the answer
		head.Refusal = nil
	}
	out, err := l.request(r, m, siblings)
	if err == nil && st.up == nil {
		l.recall(r, first)
	}
	return out, err
}

// ledger returns what the client has of a type. The caller holds mu.
func (st *stream) ledger(k kind) *ledger {
	if st.ledgers[k] == nil {
		st.ledgers[k] = newLedger(k, st.method.delta, st.node, st.server.memory, st.server.tag(), st.room)
		st.ledgers[k].caller = st.caller
		st.ledgers[k].peers = kin{server: st.server, stream: st}
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

// writer returns a writer to a peer. If that does not read, the stream ends.
func (st *stream) writer(to interface{ SendMsg(message any) error }, code codes.Code, peer string) *writer {
	timeout := st.server.options.WriteTimeout
	return newWriter(to, timeout, func() { st.fail(status.Errorf(code, "%s has not read for %v", peer, timeout)) })
}

// responses receives the responses of the control plane, one at a time. It asks for a large one
// when there is room for it. Until then, HTTP/2 makes the control plane wait.
func (st *stream) responses(ctx context.Context) error {
	arrivals := inflight.Follow(st.up)
	for said := false; ; said = true {
		size, err := arrivals.Next(ctx)
		if err != nil {
			return nil //nolint:nilerr // the stream has ended
		}
		p, err := st.begin(ctx, size)
		if err != nil {
			return nil //nolint:nilerr // the stream has ended
		}
		var m wire.Bytes
		if err := st.up.RecvMsg(&m); err != nil {
			if !said && ctx.Err() == nil {
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
		case st.inbox <- incoming{message.TypeOf(m), m, p}:
		case <-ctx.Done():
			return nil
		}
	}
}

// send writes to the client what the control plane says, and what hdsd has to add. While
// the client does not read, nothing is received for it.
func (st *stream) send(ctx context.Context) error {
	down := st.writer(st.down, codes.DeadlineExceeded, "the client")
	write := func(a *encoded) error {
		err := down.write(ctx, a.parts...)
		if err == nil && ctx.Err() == nil { // else grpc may still have a part of it
			st.release(a.place)
		}
		return err
	}
	pass := func(all ...incoming) error {
		for i := range all {
			a, err := st.response(ctx, all[i])
			if all[i].wire = nil; err == nil { // not two copies of it while one is written
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
	var early []incoming
	late := time.NewTimer(0)
	defer late.Stop()
	for {
		select {
		case m := <-st.inbox:
			if st.isEarly(m) && len(early) < maxEarly {
				if early = append(early, m); len(early) == 1 {
					late.Reset(earlyTimeout)
				}
				continue
			}
			if st.isEarly(m) { // too many wait
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
		case <-late.C:
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

// Assignments wait for the clusters that the client has asked for: without these, hdsd does
// not know their health. They wait so long, and so many responses.
const (
	earlyTimeout = 300 * time.Millisecond
	maxEarly     = 4
)

// isEarly reports whether a response has assignments before the stream had any clusters,
// although the client has asked for them.
func (st *stream) isEarly(all ...incoming) bool {
	if len(all) == 0 {
		return false
	}
	if k, ours := kindOf(all[0].typeURL); !ours || k != assignments {
		return false
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	asked := st.ledgers[clusters]
	return asked != nil && !asked.heard
}
