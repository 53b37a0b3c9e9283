package access

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/reason"
	"hdsd/peer"
)

// Policy is the compiled access configuration.
type Policy struct {
	absent bool
	warn   bool
	tokens bool // some grant is for a token
	grants []grant

	forwards bool // unknown tokens of data planes pass
}

// grant returns roles to callers that meet its conditions.
type grant struct {
	roles roles
	san   *Pattern // nil: any name, or none
	token *Hash
	glob  string // of cluster names; empty: all

	claims *claimRule // nil: any, or none
}

// roles is a set of roles.
type roles uint8

func (r roles) include(role Role) bool { return r&(1<<role|1<<Admin) != 0 }

// String lists the roles.
func (r roles) String() string {
	var names []string
	for role := Checker; role <= Admin; role++ {
		if r&(1<<role) != 0 {
			names = append(names, role.String())
		}
	}
	return strings.Join(names, ", ")
}

// Problem is a fault of a grant.
type Problem struct {
	Field   string // below access
	Message string
}

// Compile makes the policy of a configuration, nil without access. Grants with problems grant
// nothing.
func Compile(a *configv1.Access) (*Policy, []Problem) {
	p := &Policy{absent: a == nil, warn: a.GetMode() == configv1.Access_WARN}
	var problems []Problem
	for i, message := range a.GetGrants() {
		compiled, found := compile(fmt.Sprintf("grants[%d]", i), message)
		if problems = append(problems, found...); len(found) > 0 {
			continue
		}
		p.tokens = p.tokens || compiled.token != nil || compiled.claims != nil
		p.grants = append(p.grants, compiled)
	}
	return p, problems
}

func compile(field string, message *configv1.Grant) (grant, []Problem) {
	var g grant
	var problems []Problem
	add := func(name, format string, values ...any) {
		problems = append(problems, Problem{field + name, fmt.Sprintf(format, values...)})
	}
	if len(message.GetRoles()) == 0 {
		add(".roles", "is needed: name CHECKER, DATA_PLANE, VIEWER, OPERATOR or ADMIN")
	}
	for i, role := range message.GetRoles() {
		if role < Checker || role > Admin {
			add(fmt.Sprintf(".roles[%d]", i), "%d is no role: name CHECKER, DATA_PLANE, VIEWER, OPERATOR or ADMIN", role)
			continue
		}
		g.roles |= 1 << role
	}
	if g.glob = message.GetClusterNameGlob(); g.glob != "" && g.roles&(1<<Checker|1<<Admin) != 0 {
		add(".cluster_name_glob", "cannot narrow CHECKER or ADMIN: give these roles by a grant of their own")
	}
	if message.GetSan() == "" && message.GetTokenSha256() == "" && message.GetOidc() == nil {
		add("", "would hold for everybody: say for whom, by san, token_sha256 or oidc")
	}
	var err error
	if message.GetSan() != "" {
		if g.san, err = ParsePattern(message.GetSan()); err != nil {
			add(".san", "%v", err)
		}
	}
	if message.GetTokenSha256() != "" {
		if g.token, err = parseHash(message.GetTokenSha256()); err != nil {
			add(".token_sha256", "%v", err)
		}
	}
	if message.GetOidc() != nil {
		if g.claims, err = compileClaims(message.GetOidc()); err != nil {
			add(".oidc", "%v", err)
		}
		if message.GetTokenSha256() != "" {
			add(".oidc", "stands beside token_sha256, and no caller shows two tokens: make two grants")
		}
	}
	return g, problems
}

// Hash is the SHA-256 of a token.
type Hash [sha256.Size]byte

// HashOf returns the hash of a token, or nil.
func HashOf(token string) *Hash {
	if token == "" {
		return nil
	}
	hash := Hash(sha256.Sum256([]byte(token)))
	return &hash
}

func parseHash(text string) (*Hash, error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != sha256.Size {
		return nil, fmt.Errorf("is not a SHA-256 in hexadecimal (64 digits): printf %%s TOKEN | sha256sum gives it")
	}
	return (*Hash)(raw), nil
}

// Warns reports whether calls without a grant are allowed, and logged.
func (p *Policy) Warns() bool { return p.warn }

// ForwardTokens makes the policy ignore tokens of data planes that no grant names: they are for
// the control plane behind the relay. The certificate of such a caller decides.
func (p *Policy) ForwardTokens() { p.forwards = true }

// Facts are known of a caller before its first message.
type Facts struct {
	Caller peer.Caller
	Mutual bool  // the listener demands client certificates
	Token  *Hash // of the authorization header; nil without one

	Claims  *Claims // of a verified OIDC token; nil: it is none
	Problem string  // reason why it could not be verified
}

// Authority is the set of a caller's rights.
type Authority struct {
	unrestricted bool   // it has all rights
	identified   bool   // by a certificate or a token
	strange      bool   // no grant names its token
	problem      string // of its token
	forwards     bool   // unknown tokens of data planes pass
	identity     string
	grants       []*matched
}

// matched is a grant that matches a caller.
type matched struct {
	*grant
	name string // the certificate's name matched by san
}

// anyCertificate is the grant for holders of certificates if access is absent.
var anyCertificate = &grant{roles: 1<<Checker | 1<<DataPlane | 1<<Viewer}

// Judge returns the authority of a caller.
func (p *Policy) Judge(f Facts) Authority {
	a := Authority{identity: f.Caller.Identity, identified: f.Caller.Identity != "", forwards: p.forwards}
	if p.absent {
		if a.unrestricted = !f.Mutual; f.Mutual && f.Caller.Leaf != nil {
			a.grants = []*matched{{grant: anyCertificate}}
		}
		return a
	}
	a.strange, a.problem = p.tokens && f.Token != nil, f.Problem
	if f.Claims != nil {
		a.strange, a.identified, a.identity = false, true, f.Claims.identity()
	}
	shown := namesIn(f.Caller.Leaf)
	for i := range p.grants {
		g := &p.grants[i]
		if g.token != nil {
			if f.Token == nil || subtle.ConstantTimeCompare(g.token[:], f.Token[:]) != 1 {
				continue
			}
			a.strange, a.identified, a.identity = false, true, f.Token.identity()
		}
		if g.claims != nil && !g.claims.match(f.Claims) {
			continue
		}
		a.add(g, shown)
	}
	return a
}

// identity names the holder of a token.
func (h *Hash) identity() string { return "token:" + hex.EncodeToString(h[:8]) }

// add adds a grant, once for each name of the certificate that it matches.
func (a *Authority) add(g *grant, shown names) {
	if g.san == nil {
		a.grants = append(a.grants, &matched{grant: g})
		return
	}
	for _, name := range shown[g.san.kind] {
		if g.san.Match(name, nil) {
			a.grants = append(a.grants, &matched{g, name})
		}
	}
}

// Identity returns the identity of the caller, by its token or its certificate. It is empty if
// nothing is verified.
func (a *Authority) Identity() string { return a.identity }

// Allows returns the reason why the caller may not make a call, or nil.
func (a *Authority) Allows(need Need) *Denied {
	switch {
	case need.Open || a.unrestricted:
		return nil
	case a.strange && !(a.forwards && need.Role == DataPlane):
		return &Denied{Role: need.Role, Unknown: true, Reason: "the bearer token is not valid: " + cmp.Or(a.problem, "no grant names it")}
	case need.Whole && a.mayCall(need) && !a.Clusters(need).All():
		return &Denied{Role: need.Role, Reason: fmt.Sprintf("this concerns all clusters, and the grants of %q are for %s", a.identity, a.Clusters(need))}
	case a.mayCall(need):
		return nil
	case !a.identified:
		return &Denied{Role: need.Role, Unknown: true, Reason: "it is not known who calls: show a client certificate or a bearer token that has this role"}
	}
	granted := a.roles().String()
	if granted == "" {
		granted = "no role"
	}
	return &Denied{Role: need.Role, Reason: fmt.Sprintf("%q has %s: give it the role by access.grants", a.identity, granted)}
}

func (a *Authority) mayCall(need Need) bool {
	return a.include(need.Role) || need.Operators && a.include(Operator)
}

func (a *Authority) include(role Role) bool { return a.roles().include(role) }

func (a *Authority) roles() (union roles) {
	for _, m := range a.grants {
		union |= m.roles
	}
	return union
}

// Binds returns the reason why a caller with a role may not be a node, or nil.
func (a *Authority) Binds(role Role, node Node) *Denied {
	if a.unrestricted {
		return nil
	}
	var bound []string
	for _, m := range a.grants {
		switch {
		case !m.roles.include(role):
		case m.san == nil || !m.san.binds || m.san.Match(m.name, &node):
			return nil
		default:
			bound = append(bound, fmt.Sprintf("%s (%s)", m.name, m.san))
		}
	}
	if len(bound) == 0 {
		return a.Allows(Need{Role: role})
	}
	return &Denied{Role: role, Reason: fmt.Sprintf("node.id %q in region %q, zone %q is not what the caller's name binds it to: %s; give the node these values, or a certificate of its own",
		node.ID, node.Region, node.Zone, strings.Join(bound, ", "))}
}

// Owns reports whether a grant of the role binds a node id to the caller's name.
func (a *Authority) Owns(role Role, node Node) bool {
	return slices.ContainsFunc(a.grants, func(m *matched) bool {
		return m.roles.include(role) && m.san != nil && m.san.bindsID && m.san.Match(m.name, &node)
	})
}

// Denied is the error of a call without the right to make it.
type Denied struct {
	Role    Role   // the missing role
	Unknown bool   // the caller is unknown
	Reason  string // written for the caller
}

// Error implements error.
func (d *Denied) Error() string { return fmt.Sprintf("this needs role %s: %s", d.Role, d.Reason) }

// GRPCStatus returns the status for grpc.
func (d *Denied) GRPCStatus() *status.Status {
	if d.Unknown {
		return reason.With(status.New(codes.Unauthenticated, d.Error()), reason.CallerUnknown, "role", d.Role.String())
	}
	return reason.With(status.New(codes.PermissionDenied, d.Error()), reason.RoleMissing, "role", d.Role.String())
}
