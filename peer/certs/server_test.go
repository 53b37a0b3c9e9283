package certs

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/test/authority"
)

// shake makes a handshake and gives the name that the server showed.
func shake(t *testing.T, server, client *tls.Config) (string, error) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	failed := make(chan error, 1)
	go func() {
		err := tls.Server(far, server).HandshakeContext(t.Context())
		far.Close() // so that neither side waits for the other's alert
		failed <- err
	}()
	connection := tls.Client(near, client)
	err := connection.HandshakeContext(t.Context())
	near.Close()
	if serverErr := <-failed; serverErr != nil {
		return "", serverErr
	}
	if err != nil {
		return "", err
	}
	return connection.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

// site is a server with files of its own, and a clock that the test sets.
type site struct {
	*Server
	t        *testing.T
	folder   string
	now      time.Time
	reports  []string
	verified []*Client
}

// newSite makes a server of the files cert, key and, if it is there, ca.
func newSite(t *testing.T, files map[string]string) *site {
	t.Helper()
	s := &site{t: t, folder: t.TempDir(), now: time.Now()}
	authority.Save(t, s.folder, files)
	from := &configv1.ServerTls{CertificateChainFile: filepath.Join(s.folder, "cert"), PrivateKeyFile: filepath.Join(s.folder, "key")}
	if files["ca"] != "" {
		from.ClientCaFile = filepath.Join(s.folder, "ca")
	}
	var err error
	s.Server, err = New(from, Options{
		Report:   func(err error) { s.reports = append(s.reports, err.Error()) },
		Verified: func(_ net.Conn, c *Client) { s.verified = append(s.verified, c) },
		Now:      func() time.Time { return s.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// put replaces files; a second later they are looked at.
func (s *site) put(files map[string]string) {
	s.t.Helper()
	authority.Save(s.t, s.folder, files)
	s.now = s.now.Add(time.Second)
}

// expect makes a handshake: the server shows want, or refuses the client.
func (s *site) expect(client authority.Pair, want, refusal string) {
	s.t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // names differ on purpose
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &client.Certificate, nil }
	got, err := shake(s.t, s.Config(), config)
	if got != want || (err == nil) != (refusal == "") || err != nil && !strings.Contains(err.Error(), refusal) {
		s.t.Fatalf("got %q, %v, want %q, %q", got, err, want, refusal)
	}
}

// holdReports wants exactly these reports, by parts of them.
func (s *site) holdReports(want ...string) {
	s.t.Helper()
	for i, each := range want {
		if i >= len(s.reports) || !strings.Contains(s.reports[i], each) {
			s.t.Fatalf("reports are %q, want %q", s.reports, want)
		}
	}
	if len(s.reports) != len(want) {
		s.t.Fatalf("reports are %q, want %q", s.reports, want)
	}
}

func TestAServerFollowsItsFiles(t *testing.T) {
	ca, otherCA := authority.New(t, "one"), authority.New(t, "other")
	before, after, mine := ca.Issue(t, "before"), ca.Issue(t, "after"), ca.Issue(t, "client")
	s := newSite(t, map[string]string{"cert": before.Chain, "key": before.Key, "ca": ca.PEM()})
	s.expect(mine, "before", "")
	authority.Save(t, s.folder, map[string]string{"cert": after.Chain})
	s.expect(mine, "before", "") // not looked at again yet
	s.put(nil)
	s.expect(mine, "before", "") // the key is missing still
	s.put(nil)
	s.expect(mine, "before", "")
	s.holdReports("does not go with")
	s.put(map[string]string{"key": after.Key})
	s.expect(mine, "after", "")
	s.put(map[string]string{"ca": otherCA.PEM()})
	s.expect(mine, "", "unknown authority")
	s.put(map[string]string{"ca": "nonsense"})
	s.expect(mine, "", "unknown authority")
	s.holdReports("does not go with", "holds no certificate")
}

// TestAnInvalidReplacementIsRefused, and the last valid one stays. It is taken over
// when it becomes valid.
func TestAnInvalidReplacementIsRefused(t *testing.T) {
	now := time.Now()
	ca := authority.New(t, "one")
	good, client := ca.Issue(t, "good"), ca.Issue(t, "client")
	expired := ca.Issue(t, "expired", authority.Until(now.Add(-time.Minute)))
	early := ca.Issue(t, "early", authority.From(now.Add(time.Minute)))
	s := newSite(t, map[string]string{"cert": good.Chain, "key": good.Key, "ca": ca.PEM()})
	s.put(map[string]string{"cert": expired.Chain, "key": expired.Key})
	s.expect(client, "good", "")
	s.put(nil)
	s.expect(client, "good", "")
	s.holdReports("has expired at")
	s.put(map[string]string{"cert": early.Chain, "key": early.Key})
	s.expect(client, "good", "")
	s.holdReports("has expired at", "not valid before")
	s.now = s.now.Add(2 * time.Minute)
	s.expect(client, "early", "")
	stale := authority.New(t, "stale", authority.Until(now.Add(-time.Minute)))
	s.put(map[string]string{"ca": stale.PEM()})
	s.expect(client, "early", "") // by the authority from before
	s.holdReports("has expired at", "not valid before", "has expired at")
	s.put(map[string]string{"ca": stale.PEM() + ca.PEM()})
	s.expect(client, "early", "") // one of them is valid
}

// TestWhatHasExpiredGivesWay to anything, since nothing is worse.
func TestWhatHasExpiredGivesWay(t *testing.T) {
	now := time.Now()
	ca := authority.New(t, "one")
	expired, early := ca.Issue(t, "expired", authority.Until(now.Add(-time.Minute))), ca.Issue(t, "early", authority.From(now.Add(time.Minute)))
	s := newSite(t, map[string]string{"cert": expired.Chain, "key": expired.Key})
	s.holdReports("hdsd's own certificate is in use: the certificate has expired")
	s.put(map[string]string{"cert": early.Chain, "key": early.Key})
	s.expect(authority.Pair{}, "early", "")
	own, authorities := s.Expiry()
	if !own.Equal(early.Leaf.NotAfter) || !authorities.IsZero() {
		t.Errorf("expiry is %v, %v", own, authorities)
	}
}

func TestAServerWithoutClientCertificates(t *testing.T) {
	ca := authority.New(t, "one")
	pair := ca.Issue(t, "server")
	server := newSite(t, map[string]string{"cert": pair.Chain, "key": pair.Key}).Config()
	if name, err := shake(t, server, &tls.Config{RootCAs: ca.Pool(), ServerName: "server"}); name != "server" || err != nil {
		t.Errorf("got %q, %v", name, err)
	}
	old := &tls.Config{RootCAs: ca.Pool(), ServerName: "server", MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10} //nolint:gosec // to be refused
	if _, err := shake(t, server, old); err == nil {
		t.Error("TLS 1.1 was taken")
	}
	if _, err := shake(t, server, &tls.Config{RootCAs: ca.Pool(), ServerName: "server", NextProtos: []string{"other"}}); err == nil {
		t.Error("a client without h2 was taken")
	}
}

// TestRecheck: a client's certificate stays good exactly as long as some chain of it is.
func TestRecheck(t *testing.T) {
	now := time.Now()
	root, other := authority.New(t, "root"), authority.New(t, "other")
	short := root.Below(t, "short", authority.Until(now.Add(10*time.Minute)))
	own := root.Issue(t, "server")
	direct := root.Issue(t, "direct", authority.Until(now.Add(20*time.Minute)))
	below := short.Issue(t, "below")
	below.Certificate.Certificate = append(below.Certificate.Certificate, short.Certificate.Raw)
	s := newSite(t, map[string]string{"cert": own.Chain, "key": own.Key, "ca": root.PEM()})
	s.expect(direct, "server", "")
	s.expect(below, "server", "")
	hold := func(when string, want ...string) {
		t.Helper()
		s.Look()
		for i, c := range s.verified {
			err := s.Recheck(c)
			if (err == nil) != (want[i] == "") || err != nil && !strings.Contains(err.Error(), want[i]) {
				t.Fatalf("%s, %s: %v, want %q", when, c.Certificate().Subject.CommonName, err, want[i])
			}
		}
	}
	hold("at first", "", "")
	s.now = now.Add(10*time.Minute + time.Second)
	hold("when an authority between expires", "", "not trusted any more")
	s.put(map[string]string{"ca": root.PEM() + short.PEM()})
	hold("which does not help as a root", "", "not trusted any more")
	s.put(map[string]string{"ca": other.PEM()})
	hold("without its root", "unknown authority", "not trusted any more")
	s.put(map[string]string{"ca": other.PEM() + root.PEM()})
	hold("with its root again", "", "not trusted any more")
	s.now = now.Add(20*time.Minute + time.Second)
	hold("when it expires", "has expired", "not trusted any more")
}

func TestExpiryOfAuthorities(t *testing.T) {
	now := time.Now()
	at := func(minutes time.Duration) *x509.Certificate {
		return &x509.Certificate{NotAfter: now.Add(minutes * time.Minute)}
	}
	for name, c := range map[string]struct {
		all  []*x509.Certificate
		want time.Time
	}{
		"none":                 {nil, time.Time{}},
		"the next":             {[]*x509.Certificate{at(9), at(3), at(5)}, now.Add(3 * time.Minute)},
		"not one that is over": {[]*x509.Certificate{at(-1), at(5)}, now.Add(5 * time.Minute)},
		"all over":             {[]*x509.Certificate{at(-9), at(-1)}, now.Add(-time.Minute)},
	} {
		if got := nextEnd(c.all, now); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestPeersVerifyEachOther covers replicas, which are servers and clients with the same files.
func TestPeersVerifyEachOther(t *testing.T) {
	ca, otherCA := authority.New(t, "one"), authority.New(t, "other")
	server, client, stranger := ca.Issue(t, "replica-1"), ca.Issue(t, "replica-2"), otherCA.Issue(t, "replica-3")
	s := newSite(t, map[string]string{"cert": server.Chain, "key": server.Key, "ca": ca.PEM()})
	peer := func(p authority.Pair, authorities string) *tls.Config {
		config := newSite(t, map[string]string{"cert": p.Chain, "key": p.Key, "ca": authorities}).Peer()
		config.ServerName = "127.0.0.1"
		return config
	}
	for _, test := range []struct {
		name    string
		client  *tls.Config
		refusal string
	}{
		{"one authority", peer(client, ca.PEM()), ""},
		{"a client of another authority", peer(stranger, ca.PEM()), "unknown authority"},
		{"a server of another authority", peer(client, otherCA.PEM()), "unknown authority"},
	} {
		_, err := shake(t, s.Config(), test.client)
		if (err == nil) != (test.refusal == "") || err != nil && !strings.Contains(err.Error(), test.refusal) && !strings.Contains(err.Error(), "bad certificate") {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	elsewhere := peer(client, ca.PEM())
	elsewhere.ServerName = "elsewhere.test"
	if _, err := shake(t, s.Config(), elsewhere); err == nil {
		t.Error("a certificate of another host is accepted")
	}
}
