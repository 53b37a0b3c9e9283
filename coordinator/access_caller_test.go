package coordinator_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// TestStatusHasCaller covers callers with a certificate, with a token, with a grant for some clusters, and
// without an identity.
func TestStatusHasCaller(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(someGrants+`
  - {roles: [VIEWER], token_sha256: "SECRET"}
  - {roles: [VIEWER, OPERATOR], san: "pay.internal", cluster_name_glob: "pay-*"}
`), static("web", "127.0.0.1:1"))
	s.served(ca)
	for _, c := range []struct {
		name, token             string
		identity, may, operates string
	}{
		{name: "ann.internal", identity: "ann.internal", may: "VIEWER"},
		{name: "pay.internal", identity: "pay.internal", may: "VIEWER OPERATOR", operates: "pay-*"},
		{name: "x.internal", token: "secret", identity: "token:2bb80d537b1da3e3", may: "VIEWER OPERATOR", operates: "*"},
		{name: "boss.internal", identity: "boss.internal", may: "CHECKER DATA_PLANE VIEWER OPERATOR ADMIN", operates: "*"},
	} {
		var headers []string
		if c.token != "" {
			headers = []string{"Authorization: Bearer " + c.token}
		}
		code, text := s.tell(ca.named(c.name), "GET", "/v1/status", "", headers...)
		holdCaller(t, c.name, code, text, c.identity, c.may, c.operates)
	}
}

// TestWarnedCallerMayOperate covers warn mode of access.
func TestWarnedCallerMayOperate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(strings.Replace(someGrants, "access:\n", "access:\n  mode: WARN\n", 1)), static("web", "127.0.0.1:1"))
	s.served(ca)
	code, text := s.tell(ca.named("ann.internal"), "GET", "/v1/status", "")
	holdCaller(t, "ann.internal", code, text, "ann.internal", "CHECKER DATA_PLANE VIEWER OPERATOR ADMIN", "*")
}

// TestAnonymousCallerMayOperate covers a configuration without access and TLS, the default.
func TestAnonymousCallerMayOperate(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), quick, static("web", "127.0.0.1:1"))
	s.ready()
	code, text := s.get("/v1/status")
	holdCaller(t, "anybody", code, text, "", "CHECKER DATA_PLANE VIEWER OPERATOR ADMIN", "*")
}

func holdCaller(t *testing.T, who string, code int, text, identity, may, operates string) {
	t.Helper()
	var m hdsdv1.GetStatusResponse
	if err := protojson.Unmarshal([]byte(text), &m); code != 200 || err != nil {
		t.Fatalf("%s: %d %s: %v", who, code, text, err)
	}
	got := m.GetCaller()
	if got.GetIdentity() != identity || !slices.Equal(got.GetRoles(), strings.Fields(may)) || !slices.Equal(got.GetOperates(), strings.Fields(operates)) {
		t.Errorf("%s is told that it is %v", who, got)
	}
}
