package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
)

const (
	callTimeout = 500 * time.Millisecond
	// writeTimeout is the longest timeout of a write, for which etcd syncs to disk.
	writeTimeout = 4 * time.Second
	// maxAttempts bounds the attempts of a call that overlap.
	maxAttempts = 4
	// authTimeout is longer: etcd computes a slow hash of the password.
	authTimeout = 5 * time.Second
	maxPause    = time.Second

	pingInterval = 30 * time.Second
	pingTimeout  = 5 * time.Second
	maxMessage   = 64 << 20 // received; a page of entries stays below it
)

// member is one of etcd's servers.
type member struct {
	grpc  *grpc.ClientConn
	kv    pb.KVClient
	lease pb.LeaseClient
	watch pb.WatchClient
	auth  pb.AuthClient
}

// connection calls one member of etcd, until that does not answer; then the next one. Each call
// has a deadline, wants a member that knows its leader, and carries the token of the user. Writes
// have more time where etcd has taken longer: each attempt of a write would sync to disk again.
type connection struct {
	members  []*member
	user     string
	password func() (string, error)
	// authenticating holds a value while a call authenticates. Other calls wait for its token.
	authenticating chan struct{}

	mu      sync.Mutex
	current int             // the member that is called; guarded by mu
	called  context.Context // ends when the member does not answer; guarded by mu
	leave   context.CancelFunc
	token   string // guarded by mu; "" before the first authentication, and when it is stale
	timeout patience
}

// patience is the timeout of a write, and of what waits for writes.
type patience struct {
	mu    sync.Mutex
	limit time.Duration // 0: callTimeout; guarded by mu
}

func (p *patience) get() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.limit, callTimeout)
}

// note takes the time of a write. The next ones have twice that, and half of the previous timeout at least.
func (p *patience) note(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = min(max(p.limit/2, 2*took), writeTimeout)
}

// dial prepares the connections. It begins with a random member, so replicas spread over the
// members. It does not wait for etcd.
func dial(o Options) (*connection, error) {
	hosts, secure, err := addresses(o.Endpoints)
	if err != nil {
		return nil, err
	}
	transport := insecure.NewCredentials()
	if secure {
		transport = credentials.NewTLS(o.TLS)
	}
	c := &connection{user: o.Username, password: o.Password, authenticating: make(chan struct{}, 1), current: rand.N(len(hosts))}
	c.called, c.leave = context.WithCancel(context.Background())
	for _, host := range hosts {
		conn, err := grpc.NewClient("passthrough:///"+host,
			grpc.WithTransportCredentials(transport),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxPause},
				MinConnectTimeout: 2 * time.Second,
			}),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingInterval, Timeout: pingTimeout}),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
			grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithIdleTimeout(0),
		)
		if err != nil {
			_ = c.close()
			return nil, fmt.Errorf("endpoint %s of etcd: %w", host, err)
		}
		c.members = append(c.members, &member{conn, pb.NewKVClient(conn), pb.NewLeaseClient(conn), pb.NewWatchClient(conn), pb.NewAuthClient(conn)})
	}
	return c, nil
}

func (c *connection) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave()
	var problems []error
	for _, m := range c.members {
		problems = append(problems, m.grpc.Close())
	}
	return errors.Join(problems...)
}

// member returns the member to call, and the stay: a context that ends when the member does not answer.
func (c *connection) member() (*member, context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[c.current], c.called
}

// report ends the stay at a member that does not answer, and moves on to the next member, if there is one: an only
// member that is slow still tells what its watches see. Errors of a stay that has ended are not about the next member.
func (c *connection) report(stay context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.members) > 1 && stay == c.called && isTransient(kindOf(err)) {
		c.current = (c.current + 1) % len(c.members)
		c.leave()
		c.called, c.leave = context.WithCancel(context.Background())
	}
}

// write makes one attempt of a call for which etcd syncs to disk.
func write[T any](ctx context.Context, c *connection, operation string, attempt func(context.Context, *member) (T, error)) (T, error) {
	begin := time.Now()
	answer, err := call(ctx, c, operation, c.timeout.get(), attempt)
	c.timeout.note(time.Since(begin))
	return answer, err
}

// call makes one attempt of a call, and a second attempt if the token was stale.
func call[T any](ctx context.Context, c *connection, operation string, timeout time.Duration, attempt func(context.Context, *member) (T, error)) (T, error) {
	answer, token, err := callOnce(ctx, c, timeout, attempt)
	if c.forget(token, err) {
		answer, _, err = callOnce(ctx, c, timeout, attempt)
	}
	return answer, classify(operation, err)
}

func callOnce[T any](ctx context.Context, c *connection, timeout time.Duration, attempt func(context.Context, *member) (T, error)) (answer T, token string, err error) {
	m, stay := c.member()
	outgoing, token, err := c.outgoing(ctx, m)
	if err == nil {
		var cancel context.CancelFunc
		outgoing, cancel = context.WithTimeout(outgoing, timeout)
		defer cancel()
		answer, err = attempt(outgoing, m)
	}
	if err != nil && ctx.Err() == nil {
		c.report(stay, err)
	}
	return answer, token, err
}

// retry repeats an attempt until it succeeds, or its error is not transient.
func retry[T any](ctx context.Context, attempt func(context.Context) (T, error)) (T, error) {
	for n := 0; ; n++ {
		answer, err := attempt(ctx)
		if err == nil || !isTransient(err) || !sleep(ctx, pause(n)) {
			return answer, err
		}
	}
}

// outgoing returns the context of a call, with the metadata for etcd, and the token in it.
func (c *connection) outgoing(ctx context.Context, m *member) (context.Context, string, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, requireLeaderKey, requireLeader)
	if c.user == "" {
		return ctx, "", nil
	}
	token, err := c.authenticated(ctx, m)
	return metadata.AppendToOutgoingContext(ctx, tokenKey, token), token, err
}

// authenticated returns the token, and authenticates if there is none.
func (c *connection) authenticated(ctx context.Context, m *member) (string, error) {
	select {
	case c.authenticating <- struct{}{}:
		defer func() { <-c.authenticating }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	c.mu.Lock()
	token := c.token
	c.mu.Unlock()
	if token != "" {
		return token, nil
	}
	password, err := c.password()
	if err != nil {
		return "", fmt.Errorf("password of etcd's user %q: %w", c.user, err)
	}
	ctx, cancel := context.WithTimeout(ctx, authTimeout)
	defer cancel()
	answer, err := m.auth.Authenticate(ctx, &pb.AuthenticateRequest{Name: c.user, Password: password})
	if hasMessage(err, saysAuthNotEnabled) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = answer.Token
	return answer.Token, nil
}

// forget drops a stale token, and reports whether a new one may help.
func (c *connection) forget(token string, err error) bool {
	if c.user == "" || !isTokenStale(err) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token == token {
		c.token = ""
	}
	return true
}

// settle repeats a transaction until etcd answers. The transaction must be idempotent: attempts overlap.
func (c *connection) settle(ctx context.Context, operation string, request *pb.TxnRequest) (*pb.TxnResponse, error) {
	begin := time.Now()
	answer, err := overlap(ctx, c, c.timeout.get(), func(ctx context.Context) (*pb.TxnResponse, error) {
		return retry(ctx, func(ctx context.Context) (*pb.TxnResponse, error) {
			return call(ctx, c, operation, writeTimeout, func(ctx context.Context, m *member) (*pb.TxnResponse, error) { return m.kv.Txn(ctx, request) })
		})
	})
	c.timeout.note(time.Since(begin))
	return answer, err
}

// overlap makes attempts until one ends. While it has no answer, the next one begins, at another member if there is
// one. So neither a member that hangs nor a slow disk holds it up.
func overlap[T any](ctx context.Context, c *connection, wait time.Duration, attempt func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	var attempts sync.WaitGroup
	defer attempts.Wait()
	defer cancel()
	type outcome struct {
		answer T
		err    error
	}
	outcomes := make(chan outcome, maxAttempts)
	for n := 1; ; n++ {
		_, stay := c.member()
		attempts.Go(func() {
			answer, err := attempt(ctx)
			outcomes <- outcome{answer, err}
		})
		var late <-chan time.Time
		if n < maxAttempts {
			late = time.After(wait)
		}
		select {
		case o := <-outcomes:
			return o.answer, o.err
		case <-late:
			c.report(stay, context.DeadlineExceeded)
			wait *= 2
		}
	}
}

// transact makes one attempt of a transaction.
func (c *connection) transact(ctx context.Context, operation string, request *pb.TxnRequest) (*pb.TxnResponse, error) {
	attempt := func(ctx context.Context, m *member) (*pb.TxnResponse, error) { return m.kv.Txn(ctx, request) }
	if slices.ContainsFunc(request.Success, isWrite) {
		return write(ctx, c, operation, attempt)
	}
	return call(ctx, c, operation, c.timeout.get(), attempt) // it waits for the writes before it
}

// pause returns the time before attempt n+1. It doubles up to a second, with jitter.
func pause(n int) time.Duration {
	most := min(maxPause, 10*time.Millisecond<<min(n, 10))
	return most/2 + rand.N(most/2)
}

// sleep waits, and returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
