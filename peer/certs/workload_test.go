package certs

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/test/authority"
	"hdsd/test/workload"
)

// newWorkloadSite is a site whose certificates come from a Workload API.
func newWorkloadSite(t *testing.T, from *workload.Server, domains ...string) *site {
	t.Helper()
	s := &site{t: t, now: time.Now()}
	var err error
	s.Server, err = New(&configv1.ServerTls{SpiffeWorkloadApi: &configv1.SpiffeWorkloadApi{Address: from.Address(), TrustDomains: domains}}, Options{
		Report:   func(err error) { s.reports = append(s.reports, err.Error()) },
		Verified: func(_ net.Conn, c *Client) { s.verified = append(s.verified, c) },
		Now:      func() time.Time { return s.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// awaits repeats a handshake until the server shows want, or refuses.
func (s *site) awaits(client authority.Pair, want, refusal string) {
	s.t.Helper()
	deadline, tick := time.NewTimer(time.Minute), time.NewTicker(10*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for {
		s.now = s.now.Add(time.Second)
		config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // names differ on purpose
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &client.Certificate, nil }
		got, err := shake(s.t, s.Config(), config)
		if got == want && (err == nil) == (refusal == "") && (err == nil || strings.Contains(err.Error(), refusal)) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			s.t.Fatalf("got %q, %v, want %q, %q", got, err, want, refusal)
		}
	}
}

func spiffe(t *testing.T, a *authority.Authority, name, id string, edits ...authority.Edit) authority.Pair {
	t.Helper()
	return a.Issue(t, name, append(edits, authority.URI(t, id))...)
}

// TestCertificatesFromAWorkloadAPI: rotated certificates and authorities are used at once,
// those that are not valid are not.
func TestCertificatesFromAWorkloadAPI(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("rotation", func(t *testing.T) {
		const id = "spiffe://prod/hdsd"
		prod, next := authority.New(t, "prod"), authority.New(t, "next")
		api := workload.Serve(t)
		say := func(pair authority.Pair, bundle ...*authority.Authority) {
			api.Say(workload.Said{ID: id, Pair: pair, Bundle: bundle})
		}
		say(spiffe(t, prod, "first", id), prod)
		s := newWorkloadSite(t, api)
		envoy := spiffe(t, prod, "envoy", "spiffe://prod/envoy/dp-1")
		s.expect(envoy, "first", "")
		s.expect(spiffe(t, next, "stranger", "spiffe://prod/envoy/dp-1"), "", "unknown authority")
		for _, name := range []string{"second", "third"} {
			say(spiffe(t, prod, name, id), prod)
			s.awaits(envoy, name, "")
		}
		say(spiffe(t, prod, "expired", id, authority.Until(time.Now().Add(-time.Minute))), prod, next)
		s.awaits(spiffe(t, next, "envoy", "spiffe://prod/envoy/dp-2"), "third", "")
		s.holdReports("has expired")
		api.Stop()
		s.expect(envoy, "third", "") // what it said stays
		api.Start()
		say(spiffe(t, next, "fourth", id), next)
		s.awaits(envoy, "", "unknown authority")
		s.awaits(spiffe(t, next, "envoy", "spiffe://prod/envoy/dp-2"), "fourth", "")
		s.Look()
		if err := s.Recheck(s.verified[0]); err == nil || !strings.Contains(err.Error(), "not trusted any more") {
			t.Errorf("a client of the authority that is gone: %v", err)
		}
		if own, authorities := s.Expiry(); own.IsZero() || authorities.IsZero() {
			t.Errorf("expiry is %v, %v", own, authorities)
		}
	})
}

// TestTrustDomains: a trust domain's authorities speak for its own clients only.
func TestTrustDomains(t *testing.T) {
	prod, partner, other := authority.New(t, "prod"), authority.New(t, "partner"), authority.New(t, "other")
	api := workload.Serve(t)
	api.Say(workload.Said{
		ID: "spiffe://prod/hdsd", Pair: spiffe(t, prod, "hdsd", "spiffe://prod/hdsd"), Bundle: []*authority.Authority{prod},
		Federated: map[string][]*authority.Authority{"spiffe://partner": {partner}, "spiffe://other": {other}},
	})
	own, both := newWorkloadSite(t, api), newWorkloadSite(t, api, "prod", "partner")
	for name, c := range map[string]struct {
		client     authority.Pair
		alone, two string // refusals by a server that accepts its own domain, or that and partner
	}{
		"its own":               {spiffe(t, prod, "x", "spiffe://prod/x"), "", ""},
		"a partner's":           {spiffe(t, partner, "x", "spiffe://partner/x"), "unknown authority", ""},
		"another's":             {spiffe(t, other, "x", "spiffe://other/x"), "unknown authority", "unknown authority"},
		"a partner that lies":   {spiffe(t, partner, "x", "spiffe://prod/x"), "unknown authority", "has signed for it"},
		"one without id":        {prod.Issue(t, "x"), "no SPIFFE id", "no SPIFFE id"},
		"one of another scheme": {spiffe(t, prod, "x", "https://prod/x"), "no SPIFFE id", "no SPIFFE id"},
	} {
		shown := func(refusal string) string {
			if refusal == "" {
				return "hdsd"
			}
			return ""
		}
		t.Log(name)
		own.expect(c.client, shown(c.alone), c.alone)
		both.expect(c.client, shown(c.two), c.two)
	}
	nobody := authority.New(t, "nobody")
	api.Say(workload.Said{ID: "spiffe://prod/hdsd", Pair: spiffe(t, prod, "again", "spiffe://prod/hdsd"), Bundle: []*authority.Authority{nobody}})
	both.awaits(spiffe(t, nobody, "x", "spiffe://prod/x"), "again", "")
	both.expect(spiffe(t, partner, "x", "spiffe://partner/x"), "", "unknown authority") // federation has ended
}

// TestAWorkloadAPIThatHasNothing stops a start, and says why.
func TestAWorkloadAPIThatHasNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for the whole timeout")
	}
	t.Parallel()
	var lost int
	_, err := New(&configv1.ServerTls{SpiffeWorkloadApi: &configv1.SpiffeWorkloadApi{Address: workload.Serve(t).Address()}}, Options{Lost: func(error) { lost++ }})
	if err == nil || !strings.Contains(err.Error(), "has an entry for hdsd") || !strings.Contains(err.Error(), "no identity issued") || lost == 0 {
		t.Errorf("%v; said %d times", err, lost)
	}
	for _, c := range []*configv1.SpiffeWorkloadApi{{}, {Address: "/run/agent.sock"}, {Address: "unix:///a", TrustDomains: []string{"UPPER case"}}, {Address: "unix:///a", TrustDomains: []string{"spiffe://a/b"}}} {
		if field, err := CheckWorkloadAPI(c); field == "" || err == nil {
			t.Errorf("%v is taken: %s, %v", c, field, err)
		}
	}
}
