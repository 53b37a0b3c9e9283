package fleet

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/csds"
	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// Relay starts a control plane and an hdsd in front of it, with a checker.
func Relay(t testing.TB) (*ControlPlane, *Coordinator) {
	t.Helper()
	p := NewControlPlane(t)
	p.Come()
	c := Prepare(t, "resources: []\n", "")
	c.RelayTo(p.Address, "")
	c.Start()
	Checkers(t, c, 1)
	return p, c
}

// serves waits until a node's listeners answer with 200.
func (f Front) serves(t *testing.T) {
	t.Helper()
	secure := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // who serves is known
	defer secure.CloseIdleConnections()
	for url, client := range map[string]*http.Client{"http://" + f.Plain: &traffic, "https://" + f.TLS: &secure} {
		envoy.Eventually(t, Patience, url+" to answer", func() bool {
			response, err := client.Get(url + "/")
			if err == nil {
				response.Body.Close()
			}
			return err == nil && response.StatusCode == http.StatusOK
		})
	}
}

// TestEnvoysBehindTheRelay: Envoys of three releases, with hdsd as their only xDS server in
// front of a control plane that gives them listeners, routes and secrets.
func TestEnvoysBehindTheRelay(t *testing.T) {
	t.Parallel()
	p, c := Relay(t)
	servers := Upstreams(t, 3, upstream.Options{})
	addresses := Addresses(servers)
	type plane struct {
		version string
		delta   bool
		front   Front
		*envoy.Process
	}
	planes := []*plane{{version: "1.36.4", delta: true}, {version: "1.38.3"}, {version: "1.40.0", delta: true}}
	for _, one := range planes {
		one.front = Front{Plain: envoy.FreeAddress(t), TLS: envoy.FreeAddress(t)}
		p.Say(one.version, one.front, addresses...)
		one.Process = envoy.Start(t, one.version, one.version, Bootstrap(t, one.version, c.GRPC, one.delta))
		one.Listen = one.front.Plain
	}
	await := func(address, want string) {
		t.Helper()
		for _, one := range planes {
			AwaitPlane(t, one.Process, "web", address, want)
		}
	}
	calls := func(when string) {
		t.Helper()
		for _, one := range planes {
			if failed := Traffic(t, one.Process, 30); failed > 0 {
				t.Errorf("%s: %d of 30 calls through %s failed", when, failed, one.version)
			}
		}
	}
	for _, one := range planes {
		one.front.serves(t)
	}
	for _, address := range addresses {
		c.AwaitHealth("web", address, "HEALTHY")
	}
	for _, one := range planes { // from now on hdsd checks, and nobody else
		envoy.Eventually(t, Patience, one.version+" to have no health checks of its own", func() bool { return !has(one.Process) })
	}
	servers[0].Set(upstream.Status(503))
	await(addresses[0], "UNHEALTHY")
	calls("after a failure")

	bad := planes[0].front
	bad.More = `{"name": "no.such.filter", "typed_config": {"@type": "type.googleapis.com/google.protobuf.Struct", "value": {}}},`
	p.Say(planes[0].version, bad, addresses...)
	envoy.Eventually(t, Patience, "the control plane to hear of the refusal", func() bool { return p.Refused(resource.ListenerType, "no.such.filter") })

	p.Leave()
	servers[1].Set(upstream.Status(503))
	await(addresses[1], "UNHEALTHY") // without the control plane
	servers[0].Set(upstream.Healthy())
	await(addresses[0], "HEALTHY")
	calls("without the control plane")
	more := append(Addresses(Upstreams(t, 1, upstream.Options{})), addresses...)
	for _, one := range planes {
		p.Say(one.version, one.front, more...)
	}
	p.Come()
	await(more[0], "HEALTHY")
	c.AwaitHealth("web", more[0], "HEALTHY")

	c.Kill()
	calls("without hdsd")
	c.Start()
	servers[1].Set(upstream.Healthy())
	servers[2].Set(upstream.Status(503))
	await(addresses[1], "HEALTHY")
	await(addresses[2], "UNHEALTHY")
	calls("after hdsd is back")
	c.keeps(t, p.pair.Key)
}

// keeps checks that a private key that passes hdsd is nowhere in what it logs, stores and shows.
func (c *Coordinator) keeps(t *testing.T, key string) {
	t.Helper()
	secret := []byte(strings.Split(key, "\n")[1]) // a line of it
	shown := map[string][]byte{"the log": []byte(c.Logs()), "the clients": []byte(c.Operate("clients", "-o", "json"))}
	answer, err := traffic.Post("http://"+c.HTTP+csds.Path, "application/json", strings.NewReader("{}"))
	if err == nil {
		shown["CSDS"], err = io.ReadAll(answer.Body)
		answer.Body.Close()
	}
	if err != nil || !bytes.Contains(shown["CSDS"], []byte("checker-1")) {
		t.Errorf("CSDS: %v, %s", err, shown["CSDS"])
	}
	if err := filepath.WalkDir(c.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			shown[path], err = os.ReadFile(path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	for where, what := range shown {
		if bytes.Contains(what, secret) || bytes.Contains(what, []byte(base64.StdEncoding.EncodeToString(secret)[:30])) {
			t.Errorf("%s has the private key", where)
		}
	}
}

// TestTheControlPlaneAsSecondServer: an Envoy whose bootstrap names the control plane after
// hdsd starts while hdsd is away.
func TestTheControlPlaneAsSecondServer(t *testing.T) {
	t.Parallel()
	p := NewControlPlane(t)
	p.Come()
	front := Front{Plain: envoy.FreeAddress(t), TLS: envoy.FreeAddress(t)}
	p.Say("1.40.0", front, Addresses(Upstreams(t, 1, upstream.Options{}))...)
	envoy.Start(t, "1.40.0", "1.40.0", FailoverBootstrap(t, "1.40.0", envoy.FreeAddress(t), p.Address, true))
	front.serves(t)
}
