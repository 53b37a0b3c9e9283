package config_test

import (
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/config"
	"hdsd/test/authority"
)

// replicated is a replica; the three places are for etcd, peer, and what stands beside these.
func replicated(etcd, peer, beside string) string {
	return "node_id: hdsd-1\nsources: [{name: a, config_source: {path: /a}}]\nreplication:\n  etcd: {" + etcd + "}\n  peer: {" + peer + "}\n  " + beside
}

const (
	localEtcd = `endpoints: ["http://127.0.0.1:2379"]`
	localPeer = `address: "127.0.0.1:18100"`
)

func TestReplicationByDefault(t *testing.T) {
	r := load(t, replicated(localEtcd, localPeer, "")).GetReplication()
	if r.GetEtcd().GetPrefix() != "/hdsd" || r.GetPeer().GetAdvertise() != "127.0.0.1:18100" ||
		r.GetSessionTtl().AsDuration() != 3*time.Second || r.GetCommitInterval().AsDuration() != 5*time.Millisecond {
		t.Errorf("got %v", r)
	}
	set := load(t, replicated(localEtcd+", prefix: /a/b", localPeer+", advertise: \"hdsd-1:1\"", "session_ttl: 10s\n  commit_interval: 1ms")).GetReplication()
	if set.GetEtcd().GetPrefix() != "/a/b" || set.GetPeer().GetAdvertise() != "hdsd-1:1" ||
		set.GetSessionTtl().AsDuration() != 10*time.Second || set.GetCommitInterval().AsDuration() != time.Millisecond {
		t.Errorf("got %v", set)
	}
	if free := load(t, replicated(localEtcd, `address: "127.0.0.1:0"`, "")).GetReplication().GetPeer(); free.GetAdvertise() != "" {
		t.Errorf("advertises %s, which is no port", free.GetAdvertise())
	}
	if alone := load(t, "sources: [{name: a, config_source: {path: /a}}]"); alone.GetReplication() != nil {
		t.Errorf("got %v without a replication", alone.GetReplication())
	}
}

// TestWrongReplications: each text has one problem, at the line of its section.
func TestWrongReplications(t *testing.T) {
	folder := t.TempDir()
	authority.Save(t, folder, map[string]string{"password": "x"})
	for name, test := range map[string]struct{ etcd, peer, beside, want string }{
		"no etcd":            {"", localPeer, "", ":4: replication.etcd.endpoints: at least one is needed"},
		"no peer":            {localEtcd, "", "", ":5: replication.peer.address: is needed"},
		"no slash":           {localEtcd + ", prefix: hdsd", localPeer, "", `:4: replication.etcd.prefix: "hdsd" does not begin with a slash and a name`},
		"slashes only":       {localEtcd + ", prefix: //", localPeer, "", `:4: replication.etcd.prefix: "//" does not begin with a slash and a name`},
		"TLS for http":       {localEtcd + ", tls: {}", localPeer, "", ":4: replication.etcd.tls: has no effect on endpoints with http"},
		"authorities":        {`endpoints: ["https://127.0.0.1:1"], tls: {ca_file: none}`, localPeer, "", ":4: replication.etcd.tls: the authorities cannot be read"},
		"certificate only":   {`endpoints: ["https://127.0.0.1:1"], tls: {certificate_chain_file: none}`, localPeer, "", ":4: replication.etcd.tls: certificate_chain_file and private_key_file"},
		"no password":        {localEtcd + ", username: root", localPeer, "", ":4: replication.etcd.password_file: is needed with username"},
		"no user":            {localEtcd + ", password_file: password", localPeer, "", ":4: replication.etcd.username: is needed with password_file"},
		"password not there": {localEtcd + ", username: root, password_file: none", localPeer, "", ":4: replication.etcd.password_file: the secret cannot be read"},
		"name as address":    {localEtcd, "address: 'hdsd:1'", "", `:5: replication.peer.address: "hdsd:1" is not IP:PORT`},
		"open":               {localEtcd, "address: '10.0.0.1:1'", "", ":5: replication.peer.address: 10.0.0.1:1 can be reached from other machines without TLS"},
		"taken":              {localEtcd, "address: '127.0.0.1:18080'", "", ":5: replication.peer.address: 127.0.0.1:18080 is the address of http already"},
		"no port":            {localEtcd, localPeer + ", advertise: hdsd-1", "", `:5: replication.peer.advertise: "hdsd-1" is not HOST:PORT`},
		"any port":           {localEtcd, localPeer + ", advertise: 'hdsd-1:0'", "", `:5: replication.peer.advertise: "hdsd-1:0" is not HOST:PORT`},
		"glob":               {localEtcd, localPeer + ", advertise: '*.a:1'", "", `:5: replication.peer.advertise: "*.a:1" is not HOST:PORT`},
		"any address":        {localEtcd, localPeer + ", advertise: '[::]:1'", "", ":5: replication.peer.advertise: [::]:1 stands for all addresses"},
		"short session":      {localEtcd, localPeer, "session_ttl: 0.999s", ":6: replication.session_ttl: is 0.999s: from 1s"},
		"long session":       {localEtcd, localPeer, "session_ttl: 2h", ":6: replication.session_ttl: is 7200s: from 1s"},
		"parts of a second":  {localEtcd, localPeer, "session_ttl: 2.1s", ":6: replication.session_ttl: is 2.100s, and etcd grants whole seconds: write 3s"},
		"no interval":        {localEtcd, localPeer, "commit_interval: 0s", ":6: replication.commit_interval: is 0s: from 0.001s to 1s"},
		"long interval":      {localEtcd, localPeer, "commit_interval: 1.1s", ":6: replication.commit_interval: is 1.100s: from 0.001s to 1s"},
		"recording":          {localEtcd, localPeer, "\nrecording: {file: a}", ":7: recording: is not possible with replication yet"},
		"health by zone":     {localEtcd, localPeer, "\ndata_planes: {zone_health: ON_REQUEST}", ":7: data_planes.zone_health: ON_REQUEST is not possible with replication yet"},
	} {
		_, problems := config.Load(write(t, folder, "hdsd.yaml", replicated(test.etcd, test.peer, test.beside)))
		if len(problems) != 1 || !strings.Contains(problems[0].String(), "hdsd.yaml"+test.want) {
			t.Errorf("%s: got %v, want %s", name, problems, test.want)
		}
	}
	for name, want := range map[string]string{"": "node_id: is needed with replication", "node_id: 'a/b'\n": `node_id: "a/b" has a slash`} {
		_, problems := config.Load(write(t, folder, "hdsd.yaml", strings.Replace(replicated(localEtcd, localPeer, ""), "node_id: hdsd-1\n", name, 1)))
		if len(problems) != 1 || !strings.Contains(problems[0].String(), "hdsd.yaml:1: "+want) {
			t.Errorf("%q: got %v, want %s", name, problems, want)
		}
	}
}

// TestAReplicaOnAllAddresses says at which of them the others reach it.
func TestAReplicaOnAllAddresses(t *testing.T) {
	for _, address := range []string{"0.0.0.0:18100", "[::]:18100", "[::ffff:0.0.0.0]:18100"} {
		peer := "insecure: true, address: '" + address + "'"
		_, problems := config.Load(write(t, t.TempDir(), "hdsd.yaml", replicated(localEtcd, peer, "")))
		found := false
		for _, p := range problems {
			found = found || p.Field == "replication.peer.advertise" && p.Line == 5 && !p.Warning && strings.Contains(p.Message, "is needed")
		}
		if !found {
			t.Errorf("%s: got %v", address, problems)
		}
		c, problems := config.Load(write(t, t.TempDir(), "hdsd.yaml", replicated(localEtcd, peer+", advertise: '10.0.0.1:1'", "")))
		if c.GetReplication().GetPeer().GetAdvertise() != "10.0.0.1:1" {
			t.Errorf("%s: got %v, %v", address, c, problems)
		}
	}
}

// TestReplicasShowCertificatesAsServersAndClients, which each other replica has to verify.
func TestReplicasShowCertificatesAsServersAndClients(t *testing.T) {
	folder := t.TempDir()
	ca, other := authority.New(t, "one"), authority.New(t, "two")
	usage := func(usages ...x509.ExtKeyUsage) authority.Edit {
		return func(c *x509.Certificate) { c.ExtKeyUsage = usages }
	}
	files := map[string]string{"ca": ca.PEM(), "other": other.PEM(), "both": ca.PEM() + other.PEM()}
	middle := ca.Below(t, "middle")
	below := middle.Issue(t, "e")
	below.Chain += middle.PEM()
	for name, pair := range map[string]authority.Pair{
		"a": ca.Issue(t, "a"), "server": ca.Issue(t, "b", usage(x509.ExtKeyUsageServerAuth)), "client": ca.Issue(t, "c", usage(x509.ExtKeyUsageClientAuth)),
		"any": ca.Issue(t, "d", usage(x509.ExtKeyUsageAny)), "every": ca.Issue(t, "d", usage()), "below": below,
	} {
		files[name+".pem"], files[name+".key"] = pair.Chain, pair.Key
	}
	authority.Save(t, folder, files)
	for _, test := range []struct{ pair, authorities, want string }{
		{"a", "ca", ""}, {"a", "both", ""}, {"any", "ca", ""}, {"every", "ca", ""}, {"below", "ca", ""},
		{"a", "", "client_ca_file: is needed"},
		{"a", "none", "client_ca_file: " + filepath.Join(folder, "none") + ": cannot be read"},
		{"a", "other", "client_ca_file: " + filepath.Join(folder, "other") + ": has no authority of this replica's own certificate"},
		{"server", "ca", "certificate_chain_file: " + filepath.Join(folder, "server.pem") + ": is not for servers and clients"},
		{"client", "ca", "certificate_chain_file: " + filepath.Join(folder, "client.pem") + ": is not for servers and clients"},
		{"none", "ca", "certificate_chain_file: " + filepath.Join(folder, "none.pem") + ": cannot be read"},
	} {
		peer := "address: '10.0.0.1:1', tls: {certificate_chain_file: " + test.pair + ".pem, private_key_file: " + test.pair + ".key, client_ca_file: '" + test.authorities + "'}"
		_, problems := config.Load(write(t, folder, "hdsd.yaml", replicated(localEtcd, peer, "")))
		if test.want == "" && len(problems) > 0 || test.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].String(), "hdsd.yaml:5: replication.peer.tls."+test.want)) {
			t.Errorf("%s with %q: got %v, want %q", test.pair, test.authorities, problems, test.want)
		}
	}
	spiffe := "address: '10.0.0.1:1', tls: {spiffe_workload_api: {address: 'unix:///run/agent.sock'}}"
	if _, problems := config.Load(write(t, folder, "hdsd.yaml", replicated(localEtcd, spiffe, ""))); len(problems) > 0 {
		t.Errorf("SPIFFE: got %v", problems)
	}
}

// TestPathsOfReplicationAreRelativeToTheFile: of secrets and certificates.
func TestPathsOfReplicationAreRelativeToTheFile(t *testing.T) {
	folder := t.TempDir()
	ca := authority.New(t, "one")
	pair := ca.Issue(t, "a")
	authority.Save(t, folder, map[string]string{"password": "x", "ca.pem": ca.PEM(), "a.pem": pair.Chain, "a.key": pair.Key})
	const etcd = `endpoints: ["https://127.0.0.1:2379"], username: root, password_file: password, tls: {ca_file: ca.pem, certificate_chain_file: a.pem, private_key_file: a.key}`
	const peer = localPeer + ", tls: {certificate_chain_file: a.pem, private_key_file: a.key, client_ca_file: ca.pem}"
	c, problems := config.Load(write(t, folder, "hdsd.yaml", replicated(etcd, peer, "")))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e, p := c.GetReplication().GetEtcd(), c.GetReplication().GetPeer().GetTls()
	got := []string{
		e.GetPasswordFile(), e.GetTls().GetCaFile(), e.GetTls().GetCertificateChainFile(), e.GetTls().GetPrivateKeyFile(),
		p.GetClientCaFile(), p.GetCertificateChainFile(), p.GetPrivateKeyFile(),
	}
	want := []string{"password", "ca.pem", "a.pem", "a.key", "ca.pem", "a.pem", "a.key"}
	for i := range want {
		want[i] = filepath.Join(folder, want[i])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestReplicationNeedsARestart, whatever of it changes.
func TestReplicationNeedsARestart(t *testing.T) {
	before := load(t, "data_dir: /d\n"+replicated(localEtcd, localPeer, ""))
	next := load(t, "data_dir: /d\n"+replicated(localEtcd+", prefix: /b", `address: "127.0.0.1:18101"`, "session_ttl: 4s"))
	live, restart := config.Changes(before, next)
	want := []string{"replication.etcd.prefix", "replication.peer.address", "replication.peer.advertise", "replication.session_ttl"}
	if diff := cmp.Diff(want, restart); diff != "" || live != nil {
		t.Errorf("live are %v, restart: %s", live, diff)
	}
	if _, restart := config.Changes(load(t, "data_dir: /d\nnode_id: hdsd-1\nsources: [{name: a, config_source: {path: /a}}]"), before); len(restart) == 0 || !strings.HasPrefix(restart[0], "replication.") {
		t.Errorf("a replication at all: restart %v", restart)
	}
}

// TestEtcdTLS: hdsd trusts the authorities of the file, and shows the certificate that is there when it connects.
func TestEtcdTLS(t *testing.T) {
	folder := t.TempDir()
	ca := authority.New(t, "one")
	first, second := ca.Issue(t, "first"), ca.Issue(t, "second")
	authority.Save(t, folder, map[string]string{"ca.pem": ca.PEM(), "a.pem": first.Chain, "a.key": first.Key})
	const https = `endpoints: ["https://127.0.0.1:2379"]`
	read := func(etcd string) *tls.Config {
		t.Helper()
		c, problems := config.Load(write(t, folder, "hdsd.yaml", replicated(etcd, localPeer, "")))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		client, err := config.EtcdTLS(c.GetReplication().GetEtcd())
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	if got := read(localEtcd); got != nil {
		t.Errorf("for http: %v", got)
	}
	if got := read(https); got == nil || got.RootCAs != nil || got.GetClientCertificate != nil {
		t.Errorf("without files: %v", got)
	}
	client := read(https + ", tls: {ca_file: ca.pem, certificate_chain_file: a.pem, private_key_file: a.key}")
	if !client.RootCAs.Equal(ca.Pool()) || client.Certificates != nil {
		t.Errorf("trusts %v", client.RootCAs)
	}
	for _, pair := range []authority.Pair{first, second} {
		authority.Save(t, folder, map[string]string{"a.pem": pair.Chain, "a.key": pair.Key})
		shown, err := client.GetClientCertificate(&tls.CertificateRequestInfo{})
		if err != nil || !shown.Leaf.Equal(pair.Leaf) {
			t.Errorf("shows %v, %v", shown, err)
		}
	}
}
