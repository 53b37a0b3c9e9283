package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hdsd/test/envoy"
	"hdsd/test/etcd"
)

// replicaFolder makes the configuration of a replica, and returns the address of its HTTP server.
func replicaFolder(t *testing.T, id, endpoint string) (dir, address string) {
	t.Helper()
	dir = t.TempDir()
	address = freeAddress(t)
	text := fmt.Sprintf(`
node_id: %s
grpc: {address: "127.0.0.1:0"}
http: {address: %q}
data_dir: data
replication: {etcd: {endpoints: [%q]}, peer: {address: "127.0.0.1:0"}, session_ttl: 1s}
sources:
- {name: local, config_source: {path_config_source: {path: clusters.yaml}}}
`, id, address, endpoint)
	for name, content := range map[string]string{"hdsd.yaml": text, "clusters.yaml": "resources: []\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, address
}

// freeAddress returns an address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func awaitReady(t *testing.T, address string) {
	t.Helper()
	envoy.Eventually(t, time.Minute, "readiness of "+address, func() bool {
		answer, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// TestReplicasFound covers an etcd that is wiped: the replica with the history founds the fleet again, and another one with an
// empty folder copies it.
func TestReplicasFound(t *testing.T) {
	server := etcd.Start(t)
	dir, address := replicaFolder(t, "r1", server.URL)
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	found := func(flags ...string) (int, string) {
		status, out, errors := hdsd(t, append([]string{"replicas", "found", "-c", filepath.Join(dir, "hdsd.yaml")}, flags...)...)
		return status, out + errors
	}
	want := func(status int, text string, flags ...string) {
		t.Helper()
		if got, output := found(flags...); got != status || !strings.Contains(output, text) {
			t.Errorf("%v: exit status %d, want %d and %q:\n%s", flags, got, status, text, output)
		}
	}
	want(exitFailed, "the database has no history", "--yes")
	record(t, dir, 10)
	running := serveFolder(t, dir)
	awaitReady(t, address)
	want(exitFailed, "another process", "--yes")
	other, _ := replicaFolder(t, "r2", server.URL)
	second := serveFolder(t, other)
	running.stop()
	want(exitFailed, "etcd has a session of r2", "--yes", "--force")
	second.stop()
	want(exitFailed, "--force founds it anyway", "--yes")

	server.Kill()
	server.Wipe()
	server.Restart()
	want(exitDone, "nothing has changed", "--dry-run")
	want(exitFailed, "give --yes")
	want(exitDone, "is founded", "--yes")
	want(exitFailed, "is founded from this database already", "--yes")
	third, ready := replicaFolder(t, "r3", server.URL)
	serveFolder(t, dir)
	awaitReady(t, address)
	serveFolder(t, third)
	awaitReady(t, ready)
	answer, err := http.Get("http://" + ready + "/v1/transitions?cluster=plain")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || strings.Count(string(text), `"time"`) != 10 {
		t.Errorf("the copy has %s, %v", text, err)
	}
}

// TestValidateReplicas covers a replica without etcd, and one with etcd and no other replica yet.
func TestValidateReplicas(t *testing.T) {
	server := etcd.Start(t)
	dir, _ := replicaFolder(t, "r1", server.URL)
	validate := func(status int, text string, flags ...string) {
		t.Helper()
		got, out, _ := hdsd(t, append([]string{"validate", "-c", filepath.Join(dir, "hdsd.yaml")}, flags...)...)
		if got != status || !strings.Contains(out, text) {
			t.Errorf("%v: exit status %d, want %d and %q:\n%s", flags, got, status, text, out)
		}
	}
	validate(exitDone, "hdsd.yaml: replication was not examined: --connect asks etcd and the other replicas")
	validate(exitDone, "hdsd.yaml: etcd has no fleet at /hdsd yet", "--connect")
	server.Kill()
	validate(exitFailed, "hdsd.yaml: replication.etcd.endpoints[0]: "+server.URL+": asking for the status of etcd: etcd does not answer", "--connect")
}

// TestTheEnvironmentPlacesAReplica covers one configuration for all replicas.
func TestTheEnvironmentPlacesAReplica(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "hdsd.yaml")
	text := `
data_dir: data
replication: {etcd: {endpoints: ["http://127.0.0.1:1"]}, peer: {address: "0.0.0.0:18100", insecure: true}}
sources:
- {name: local, config_source: {path_config_source: {path: clusters.yaml}}}
`
	if err := os.WriteFile(filepath.Join(dir, "clusters.yaml"), []byte("resources: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, out, _ := hdsd(t, "validate", "-c", path); !strings.Contains(out, "node_id: is needed") || !strings.Contains(out, "replication.peer.advertise: is needed") {
		t.Errorf("without variables:\n%s", out)
	}
	t.Setenv(nodeIDVariable, "hdsd-1")
	t.Setenv(advertiseVariable, "hdsd-1.hdsd:18100")
	if status, out, _ := hdsd(t, "validate", "-c", path); status != exitDone {
		t.Errorf("exit status %d:\n%s", status, out)
	}
	t.Setenv(advertiseVariable, "hdsd-1")
	if _, out, _ := hdsd(t, "validate", "-c", path); !strings.Contains(out, `replication.peer.advertise: "hdsd-1" is not HOST:PORT`) {
		t.Errorf("a wrong address:\n%s", out)
	}
}
