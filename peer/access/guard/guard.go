package guard

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/reason"
	"hdsd/internal/rest"
	"hdsd/peer"
	"hdsd/peer/access"
)

// Options are the settings of a Guard.
type Options struct {
	Policy     *access.Policy
	Log        zerolog.Logger
	Registerer prometheus.Registerer
}

// Guard admits calls by its policy.
type Guard struct {
	log    zerolog.Logger
	denied *prometheus.CounterVec
	policy atomic.Pointer[access.Policy]

	issuers issuers

	mu   sync.Mutex
	open map[*call]struct{} // calls that SetPolicy may end
}

// New makes a guard.
func New(o Options) *Guard {
	g := &Guard{log: o.Log, open: map[*call]struct{}{}, denied: promauto.With(o.Registerer).NewCounterVec(prometheus.CounterOpts{
		Name: "hdsd_access_denied_total", Help: "Calls that their callers have no authority for, by the role that they need. In mode WARN they were allowed.",
	}, []string{"role", "mode"})}
	for role := access.Checker; role <= access.Admin; role++ { // 0 from the start
		g.denied.WithLabelValues(role.String(), modeOf(false))
		g.denied.WithLabelValues(role.String(), modeOf(true))
	}
	g.policy.Store(o.Policy)
	return g
}

func modeOf(warns bool) string {
	if warns {
		return configv1.Access_WARN.String()
	}
	return configv1.Access_ENFORCE.String()
}

// SetPolicy puts another policy in force, and ends the open calls that it denies. Issuers are
// asked again for their keys and configurations.
func (g *Guard) SetPolicy(p *access.Policy) {
	g.policy.Store(p)
	g.issuers.renew(p.Issuers())
	g.mu.Lock()
	open := make([]*call, 0, len(g.open))
	for c := range g.open {
		open = append(open, c)
	}
	g.mu.Unlock()
	for _, c := range open {
		if err := c.recheck(); err != nil {
			c.cancel(&withdrawal{err})
		}
	}
}

// call is one call. It implements access.Permit.
type call struct {
	guard        *Guard
	method       string
	need         access.Need
	facts        access.Facts
	sees         access.Clusters         // when the call began
	cancel       context.CancelCauseFunc // nil: it ends before it matters
	tokenExpired atomic.Bool             // its token has expired

	mu        sync.Mutex
	policy    *access.Policy // of authority
	authority access.Authority
	node      *access.Node // the admitted node
}

// enter judges a call. On an error it must not be made.
func (g *Guard) enter(ctx context.Context, method string, need access.Need, facts access.Facts, token string) (*call, error) {
	c := &call{guard: g, method: method, need: need, facts: facts, policy: g.policy.Load()}
	if granted := c.policy.Issuers(); token != "" && len(granted) > 0 && !need.Open {
		var err error
		if c.facts.Claims, err = g.issuers.claims(ctx, granted, token); err != nil {
			c.facts.Problem = err.Error()
		}
	}
	c.facts.Token = access.HashOf(token)
	facts = c.facts
	c.authority = c.policy.Judge(facts)
	c.sees = clustersOf(c.policy, &c.authority, need)
	return c, c.check(&c.authority, c.authority.Allows(need))
}

// context returns the context for the call's handler.
func (c *call) context(ctx context.Context) context.Context {
	caller := c.facts.Caller
	caller.Identity = c.authority.Identity()
	return access.With(peer.With(ctx, caller), c)
}

// follow lets SetPolicy end the call, until leave.
func (c *call) follow(ctx context.Context) (_ context.Context, leave func()) {
	ctx, c.cancel = context.WithCancelCause(ctx)
	g := c.guard
	g.mu.Lock()
	g.open[c] = struct{}{}
	g.mu.Unlock()
	if c.isStale() { // the policy has changed meanwhile
		if err := c.recheck(); err != nil {
			c.cancel(&withdrawal{err})
		}
	}
	stop := c.expire()
	return ctx, func() {
		stop()
		g.mu.Lock()
		delete(g.open, c)
		g.mu.Unlock()
		c.cancel(nil)
	}
}

// expire ends the call when its token expires.
func (c *call) expire() (stop func()) {
	if c.facts.Claims == nil {
		return func() {}
	}
	timer := time.AfterFunc(time.Until(c.facts.Claims.Expires), func() {
		c.tokenExpired.Store(true)
		authority := c.now()
		if err := c.check(&authority, c.expired()); err != nil {
			c.cancel(&withdrawal{err})
		}
	})
	return func() { timer.Stop() }
}

// expired returns an error if the token has expired. A mode that only warns lets the call go on.
func (c *call) expired() *access.Denied {
	if !c.tokenExpired.Load() {
		return nil
	}
	return &access.Denied{Role: c.need.Role, Unknown: true, Reason: "the bearer token has expired"}
}

// isStale reports whether the authority is of a policy that is no longer in force.
func (c *call) isStale() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.policy != c.guard.policy.Load()
}

// now returns the authority under the policy in force.
func (c *call) now() access.Authority {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.guard.policy.Load(); p != c.policy {
		c.policy, c.authority = p, p.Judge(c.facts)
	}
	return c.authority
}

// recheck returns the reason why the call may not go on, or nil.
func (c *call) recheck() error {
	authority := c.now()
	if err := c.check(&authority, cmp.Or(c.expired(), authority.Allows(c.need))); err != nil {
		return err
	}
	if !c.Clusters().Equal(c.sees) {
		return errOtherClusters
	}
	c.mu.Lock()
	node := c.node
	c.mu.Unlock()
	if node == nil {
		return nil
	}
	return c.check(&authority, authority.Binds(c.need.Role, *node))
}

// Admit implements access.Permit.
func (c *call) Admit(node access.Node) error {
	c.mu.Lock()
	c.node = &node
	c.mu.Unlock()
	authority := c.now()
	return c.check(&authority, authority.Binds(c.need.Role, node))
}

// Owns implements access.Permit.
func (c *call) Owns(node access.Node) bool {
	authority := c.now()
	return authority.Owns(c.need.Role, node)
}

// Clusters implements access.Permit.
func (c *call) Clusters() access.Clusters {
	authority := c.now()
	return clustersOf(c.guard.policy.Load(), &authority, c.need)
}

// Over implements access.Permit.
func (c *call) Over(role access.Role) access.Clusters {
	authority := c.now()
	return clustersOf(c.guard.policy.Load(), &authority, access.Need{Role: role})
}

func clustersOf(p *access.Policy, authority *access.Authority, need access.Need) access.Clusters {
	if p.Warns() {
		return access.AllClusters()
	}
	return authority.Clusters(need)
}

// errOtherClusters ends a call that shows clusters by grants that are no longer in force.
var errOtherClusters = reason.New(codes.Unavailable, reason.GrantsChanged, "the grants have changed, and with them the clusters that the caller may see: call again")

// withdrawal is the cause of a call's end after its authority changed.
type withdrawal struct{ error }

// Unwrap returns the error for the caller.
func (w *withdrawal) Unwrap() error { return w.error }

// check counts and logs a denial. It returns the error, unless the policy only warns.
func (c *call) check(authority *access.Authority, denied *access.Denied) error {
	if denied == nil {
		return nil
	}
	g := c.guard
	warns := g.policy.Load().Warns()
	mode := modeOf(warns)
	g.denied.WithLabelValues(denied.Role.String(), mode).Inc()
	g.log.Warn().Str("event", "access_denied").Str("mode", mode).Str("call", rest.Brief(c.method)).Str("role", denied.Role.String()).
		Str("identity", authority.Identity()).Str("address", c.facts.Caller.Address).Msg(denied.Reason)
	if warns {
		return nil
	}
	return denied
}
