package access_test

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/peer"
	"hdsd/peer/access"
)

// holder is the caller with a verified certificate of these names.
func holder(names ...string) access.Facts {
	leaf := &x509.Certificate{}
	for _, name := range names {
		switch {
		case strings.Contains(name, ":"):
			parsed, err := url.Parse(name)
			if err != nil {
				panic(err)
			}
			leaf.URIs = append(leaf.URIs, parsed)
		case strings.Contains(name, "@"):
			leaf.EmailAddresses = append(leaf.EmailAddresses, name)
		default:
			leaf.DNSNames = append(leaf.DNSNames, name)
		}
	}
	return access.Facts{Caller: peer.Caller{Identity: names[0], Names: names, Address: "10.0.0.1:1", Leaf: leaf}, Mutual: true}
}

func bearing(token string) access.Facts {
	return access.Facts{Caller: peer.Caller{Address: "10.0.0.1:1"}, Token: access.HashOf(token)}
}

func hashed(token string) string {
	hash := sha256.Sum256([]byte(token))
	return hex.EncodeToString(hash[:])
}

func grants(t testing.TB, all ...*configv1.Grant) *access.Policy {
	t.Helper()
	p, problems := access.Compile(&configv1.Access{Grants: all})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return p
}

func to(san string, roles ...access.Role) *configv1.Grant {
	return &configv1.Grant{San: san, Roles: roles}
}

// all lists the roles that somebody has.
func all(p *access.Policy, f access.Facts) string {
	a := p.Judge(f)
	var has []string
	for role := access.Checker; role <= access.Admin; role++ {
		if a.Allows(access.Need{Role: role}) == nil {
			has = append(has, role.String())
		}
	}
	return strings.Join(has, " ")
}

const everyRole = "CHECKER DATA_PLANE VIEWER OPERATOR ADMIN"

func TestRoles(t *testing.T) {
	secret := &configv1.Grant{TokenSha256: hashed("secret"), Roles: []access.Role{access.Operator}}
	p := grants(t,
		to("spiffe://prod/checker/*", access.Checker),
		to("*.envoy.internal", access.DataPlane, access.Viewer),
		to("*@example.com", access.Viewer),
		to("boss.internal", access.Admin),
		secret,
		&configv1.Grant{San: "jump.internal", TokenSha256: hashed("both"), Roles: []access.Role{access.Operator}},
	)
	with := func(f access.Facts, token string) access.Facts {
		f.Token = access.HashOf(token)
		return f
	}
	for what, c := range map[string]struct {
		who  access.Facts
		want string
	}{
		"a checker":                      {holder("spiffe://prod/checker/a"), "CHECKER"},
		"below a checker":                {holder("spiffe://prod/checker/a/b"), ""},
		"of another trust domain":        {holder("spiffe://test/checker/a"), ""},
		"a data plane":                   {holder("a.envoy.internal"), "DATA_PLANE VIEWER"},
		"a name that only ends so":       {holder("a.envoy.internal.evil.example"), ""},
		"a name of another kind":         {holder("urn:x.envoy.internal"), ""},
		"an address as an e-mail's name": {holder("a@b.envoy.internal"), ""},
		"both by two names":              {holder("a.envoy.internal", "spiffe://prod/checker/a"), "CHECKER DATA_PLANE VIEWER"},
		"a person":                       {holder("ann@example.com"), "VIEWER"},
		"an admin":                       {holder("boss.internal"), everyRole},
		"nobody":                         {access.Facts{}, ""},
		"a name that was not verified":   {access.Facts{Caller: peer.Caller{Address: "boss.internal"}}, ""},
		"a token":                        {bearing("secret"), "OPERATOR"},
		"another token":                  {bearing("Secret"), ""},
		"a hash for its token":           {bearing(hashed("secret")), ""},
		"a token and a name":             {with(holder("a.envoy.internal"), "secret"), "DATA_PLANE VIEWER OPERATOR"},
		"a wrong token beside a name":    {with(holder("boss.internal"), "wrong"), ""},
		"the token of two conditions":    {bearing("both"), ""},
		"the name of two conditions":     {holder("jump.internal"), ""},
		"both conditions":                {with(holder("jump.internal"), "both"), "OPERATOR"},
	} {
		if got := all(p, c.who); got != c.want {
			t.Errorf("%s has %q, want %q", what, got, c.want)
		}
	}
}

func TestAbsent(t *testing.T) {
	p, _ := access.Compile(nil)
	for what, c := range map[string]struct {
		who  access.Facts
		want string
	}{
		"without mutual TLS":           {access.Facts{}, everyRole},
		"without mutual TLS, a token":  {bearing("whatever"), everyRole},
		"under mutual TLS":             {holder("anybody.example"), "CHECKER DATA_PLANE VIEWER"},
		"under mutual TLS, no names":   {access.Facts{Mutual: true, Caller: peer.Caller{Leaf: &x509.Certificate{}}}, "CHECKER DATA_PLANE VIEWER"},
		"not verified":                 {access.Facts{Mutual: true}, ""},
		"under mutual TLS, with token": {access.Facts{Mutual: true, Caller: holder("a").Caller, Token: access.HashOf("x")}, "CHECKER DATA_PLANE VIEWER"},
	} {
		if got := all(p, c.who); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
	if empty := grants(t); all(empty, access.Facts{}) != "" || all(empty, holder("a")) != "" {
		t.Error("access without grants grants something")
	}
}

func TestDenials(t *testing.T) {
	p := grants(t, to("a.internal", access.Checker), &configv1.Grant{TokenSha256: hashed("secret"), Roles: []access.Role{access.Viewer}})
	for what, c := range map[string]struct {
		who  access.Facts
		code codes.Code
		says string
	}{
		"nobody":        {access.Facts{}, codes.Unauthenticated, "needs role OPERATOR: it is not known who calls"},
		"unknown token": {bearing("x"), codes.Unauthenticated, "needs role OPERATOR: the bearer token is not valid"},
		"a checker":     {holder("a.internal"), codes.PermissionDenied, `needs role OPERATOR: "a.internal" has CHECKER`},
		"a stranger":    {holder("b.internal"), codes.PermissionDenied, `needs role OPERATOR: "b.internal" has no role`},
		"a viewer":      {bearing("secret"), codes.PermissionDenied, `needs role OPERATOR: "token:2bb80d537b1da3e3" has VIEWER`},
	} {
		a := p.Judge(c.who)
		err := a.Allows(access.Need{Role: access.Operator})
		if err == nil {
			t.Fatalf("%s is allowed", what)
		}
		if got := status.Convert(err); got.Code() != c.code || !strings.Contains(got.Message(), c.says) {
			t.Errorf("%s: %v, want %v with %q", what, got, c.code, c.says)
		}
		if open := a.Allows(access.Need{Open: true}); open != nil {
			t.Errorf("%s: what needs no role: %v", what, open)
		}
	}
}

func TestBinding(t *testing.T) {
	p := grants(t,
		to("spiffe://prod/checker/{zone}/{node.id}", access.Checker),
		to("spiffe://prod/zone/{region}/{zone}", access.Checker, access.DataPlane),
		to("{node.id}.envoy.internal", access.DataPlane),
		to("*.free.internal", access.Checker),
		to("boss.internal", access.Admin),
	)
	for _, c := range []struct {
		who         string
		role        access.Role
		node        access.Node
		binds, owns bool
	}{
		{"spiffe://prod/checker/z1/a", access.Checker, access.Node{ID: "a", Zone: "z1"}, true, true},
		{"spiffe://prod/checker/z1/a", access.Checker, access.Node{ID: "b", Zone: "z1"}, false, false},
		{"spiffe://prod/checker/z1/a", access.Checker, access.Node{ID: "a", Zone: "z2"}, false, false},
		{"spiffe://prod/checker/z1/a", access.Checker, access.Node{ID: "a"}, false, false},
		{"spiffe://prod/checker/z1/a", access.Checker, access.Node{}, false, false},
		{"spiffe://prod/checker//a", access.Checker, access.Node{ID: "a"}, false, false},
		{"spiffe://prod/checker/z1/a", access.DataPlane, access.Node{ID: "a", Zone: "z1"}, false, false},
		{"spiffe://prod/zone/r1/z1", access.Checker, access.Node{ID: "any", Region: "r1", Zone: "z1"}, true, false},
		{"spiffe://prod/zone/r1/z1", access.Checker, access.Node{ID: "any", Region: "r2", Zone: "z1"}, false, false},
		{"a.envoy.internal", access.DataPlane, access.Node{ID: "a"}, true, true},
		{"a.envoy.internal", access.DataPlane, access.Node{ID: "a.envoy.internal"}, false, false},
		{"x.free.internal", access.Checker, access.Node{ID: "whatever", Zone: "z9"}, true, false},
		{"boss.internal", access.Checker, access.Node{ID: "whatever"}, true, false},
	} {
		a := p.Judge(holder(c.who))
		if got := a.Binds(c.role, c.node); (got == nil) != c.binds {
			t.Errorf("%s as %s %+v: %v", c.who, c.role, c.node, got)
		} else if got != nil && c.role == access.Checker && (!strings.Contains(got.Error(), c.who) || status.Code(got) != codes.PermissionDenied) {
			t.Errorf("%s as %+v is told %v", c.who, c.node, got)
		}
		if got := a.Owns(c.role, c.node); got != c.owns {
			t.Errorf("%s as %s %+v: owns it: %t", c.who, c.role, c.node, got)
		}
	}
}

func TestClusters(t *testing.T) {
	some := func(glob, san string, roles ...access.Role) *configv1.Grant {
		return &configv1.Grant{San: san, ClusterNameGlob: glob, Roles: roles}
	}
	p := grants(t,
		some("pay-*", "pay.internal", access.Viewer, access.Operator), some("web-?", "pay.internal", access.Viewer),
		some("pay-*", "both.internal", access.Viewer), to("both.internal", access.Viewer),
		some("pay-*", "other.internal", access.DataPlane), to("boss.internal", access.Admin),
	)
	viewer, changes := access.Need{Role: access.Viewer}, access.Need{Role: access.Operator}
	for _, c := range []struct {
		who  string
		need access.Need
		want string
		pay  bool
		web  bool
	}{
		{"pay.internal", viewer, "pay-*, web-?", true, true},
		{"pay.internal", changes, "pay-*", true, false},
		{"pay.internal", access.Need{Role: access.Viewer, Operators: true}, "pay-*, web-?", true, true},
		{"both.internal", viewer, "*", true, true},
		{"other.internal", viewer, "", false, false},
		{"other.internal", access.Need{Role: access.DataPlane}, "pay-*", true, false},
		{"boss.internal", viewer, "*", true, true},
		{"nobody", viewer, "", false, false},
	} {
		a := p.Judge(holder(c.who))
		got := a.Clusters(c.need)
		if got.String() != c.want || got.Has("pay-1") != c.pay || got.Has("web-1") != c.web || got.Has("web-10") && !got.All() {
			t.Errorf("%s sees %v for %+v", c.who, got, c.need)
		}
		whole := c.need
		whole.Whole = true
		if denied := a.Allows(whole); (denied == nil) != got.All() {
			t.Errorf("%s, of all clusters: %v", c.who, denied)
		}
	}
	_, problems := access.Compile(&configv1.Access{Grants: []*configv1.Grant{
		some("x", "a", access.Checker), some("x", "a", access.Viewer, access.Admin), some("x", "a", access.Viewer),
	}})
	if len(problems) != 2 || problems[0].Field != "grants[0].cluster_name_glob" || problems[1].Field != "grants[1].cluster_name_glob" {
		t.Errorf("problems: %+v", problems)
	}
}

func TestPatterns(t *testing.T) {
	a, b := &access.Node{ID: "a", Zone: "b"}, &access.Node{ID: "a-b", Zone: "c", Region: "r"}
	for _, c := range []struct {
		pattern, name string
		node          *access.Node
		want          bool
	}{
		{"a", "a", nil, true},
		{"a", "ab", nil, false},
		{"a", "", nil, false},
		{"*", "", nil, true},
		{"*", "a.b", nil, true},
		{"*", "a/b", nil, false},
		{"*/*", "a/b", nil, true},
		{"a*b*c", "axbyc", nil, true},
		{"a*b*c", "axbxbyc", nil, true},
		{"a*b*c", "ac", nil, false},
		{"*ab", "aab", nil, true},
		{"*.x/*.x", "a.x/b.x", nil, true},
		{"*.x/*.x", "a.x/b.x/c.x", nil, false},
		{"**a", "ba", nil, true},
		{"{node.id}", "", nil, false},
		{"{node.id}", "x", nil, true},
		{"{node.id}.*", "x.", nil, true},
		{"x{zone}", "x", nil, false},
		{"{node.id}", "a", a, true},
		{"{node.id}/{zone}", "a/b", a, true},
		{"{zone}/{node.id}", "a/b", a, false},
		{"{node.id}-{zone}", "a-b-c", b, false}, // "a" in "b-c" would match as well
		{"{node.id}-{zone}", "a-b", a, true},
		{"{zone}-{node.id}", "c-a-b", b, true}, // the zone ends at the first -
		{"*-{node.id}", "x-a-b", b, false},     // so would "b"
		{"*-{node.id}", "x-y-a", a, true},
		{"{region}.{zone}.{node.id}", "r.c.a-b", b, true},
		{"{zone}--{node.id}", "a---b", &access.Node{ID: "b", Zone: "a-"}, false}, // so would "-b" in "a"
		{"{zone}--{node.id}", "a---b", &access.Node{ID: "-b", Zone: "a"}, true},
		{"*--{node.id}", "a---b", &access.Node{ID: "-b"}, false}, // so would "b"
		{"*--{node.id}", "a---b", &access.Node{ID: "b"}, true},
		{"*", "a", &access.Node{}, true},
		{"{region}", "a", a, false},
		{"{node.id}", "a/b", &access.Node{ID: "a/b"}, false},
		{"{node.id}/{zone}", "a/b/c", &access.Node{ID: "a/b", Zone: "c"}, false},
	} {
		p, err := access.ParsePattern(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if got := p.Match(c.name, c.node); got != c.want {
			t.Errorf("%s matches %s of %+v: %t", c.pattern, c.name, c.node, got)
		}
	}
	for pattern, says := range map[string]string{
		"{id}": "{node.id}, {region} or {zone}", "{node.id": "braces", "}": "braces", "a{}b": "braces", "{{zone}}": "braces",
		"{zone}{node.id}": "nothing stands between", "*{zone}": "nothing stands between", "{zone}*": "nothing stands between",
	} {
		if _, err := access.ParsePattern(pattern); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", pattern, err, says)
		}
	}
}

func TestWrongGrants(t *testing.T) {
	_, problems := access.Compile(&configv1.Access{Grants: []*configv1.Grant{
		{},
		{Roles: []access.Role{access.Checker, 9}, San: "{x}"},
		{Roles: []access.Role{access.Checker}, TokenSha256: "abc"},
		{Roles: []access.Role{access.Checker}, TokenSha256: hashed("a")[1:] + "x"},
	}})
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
	}
	want := []string{"grants[0].roles", "grants[0]", "grants[1].roles[1]", "grants[1].san", "grants[2].token_sha256", "grants[3].token_sha256"}
	if !slices.Equal(fields, want) {
		t.Errorf("problems: %+v", problems)
	}
}

// FuzzPattern holds that no name of two readings matches: whatever a name binds, no
// other values of the same node do.
func FuzzPattern(f *testing.F) {
	f.Add("spiffe://prod/{zone}/{node.id}", "spiffe://prod/z/a", "a", "z", "b", "z")
	f.Add("{node.id}-{zone}.x", "a-b-c.x", "a", "b-c", "a-b", "c")
	f.Add("*-{node.id}", "x-a-b", "b", "", "a-b", "")
	f.Add("{zone}--{node.id}", "a---b", "b", "a-", "-b", "a")
	f.Add("*--{node.id}", "a---b", "b", "", "-b", "")
	f.Add("{zone}.*.{node.id}", "a.b.c.d", "d", "a", "c.d", "a.b")
	f.Fuzz(func(t *testing.T, pattern, name, id, zone, otherID, otherZone string) {
		p, err := access.ParsePattern(pattern)
		if err != nil {
			return
		}
		one, other := &access.Node{ID: id, Zone: zone, Region: zone}, &access.Node{ID: otherID, Zone: otherZone, Region: otherZone}
		if !p.Match(name, one) {
			return
		}
		if !p.Match(name, nil) {
			t.Errorf("%q matches %q of %+v, and nobody's", pattern, name, one)
		}
		binds := func(v string) bool { return strings.Contains(pattern, v) }
		same := (!binds("{node.id}") || id == otherID) && (!binds("{zone}") && !binds("{region}") || zone == otherZone)
		if p.Match(name, other) && !same {
			t.Errorf("%q binds %q to %+v and to %+v", pattern, name, one, other)
		}
	})
}

// FuzzToken holds that only the token whose hash is granted is one.
func FuzzToken(f *testing.F) {
	f.Add("secret", "Secret")
	f.Add("", "x")
	f.Fuzz(func(t *testing.T, token, other string) {
		p := grants(t, &configv1.Grant{TokenSha256: hashed(token), Roles: []access.Role{access.Viewer}})
		if got := all(p, bearing(other)); (got == "VIEWER") != (other == token && token != "") {
			t.Errorf("the token of %q gives %q to %q", token, got, other)
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{1, 100} {
		many := make([]*configv1.Grant, n)
		for i := range many {
			many[i] = to(fmt.Sprintf("spiffe://prod/team-%d/{zone}/{node.id}", n-1-i), access.Checker)
		}
		p, who := grants(b, many...), holder("spiffe://prod/team-0/z1/a")
		b.Run(fmt.Sprintf("%d grants", n), func(b *testing.B) {
			for b.Loop() {
				if a := p.Judge(who); a.Allows(access.Need{Role: access.Checker}) != nil || a.Binds(access.Checker, access.Node{ID: "a", Zone: "z1"}) != nil {
					b.Fatal("denied")
				}
			}
		})
	}
}
