package etcd

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	real "hdsd/internal/demo/envoy"
)

// patience bounds the start of a server on a busy machine.
const patience = time.Minute

var client = http.Client{Timeout: time.Second}

// Server is one etcd server. Its methods are for the goroutine of its test.
type Server struct {
	*real.Child        // the running process, or the last one
	Address     string // of clients, host:port
	URL         string // of clients

	t           testing.TB
	binary      string
	environment []string // beside that of the test
	data        string
	health      string // URL of the health check, without TLS
	arguments   []string
}

// Start starts a server with flags beside those that a cluster of one needs. It does not sync
// files, which matters only where a machine loses power.
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	return StartCluster(t, 1, append([]string{"--unsafe-no-fsync"}, flags...)...)[0]
}

// StartCluster starts n servers that are one cluster.
func StartCluster(t testing.TB, n int, flags ...string) []*Server {
	t.Helper()
	return startCluster(t, n, Binary(t), nil, flags)
}

func startCluster(t testing.TB, n int, binary string, environment, flags []string) []*Server {
	t.Helper()
	scheme := "http"
	for _, flag := range flags {
		if strings.HasPrefix(flag, "--cert-file") {
			scheme = "https"
		}
	}
	var servers []*Server
	var names, peers []string
	for i := range n {
		address, peer := freeAddress(t), freeAddress(t)
		name := fmt.Sprintf("etcd-%d", i+1)
		names, peers = append(names, name+"=http://"+peer), append(peers, peer)
		servers = append(servers, &Server{binary: binary, environment: environment, Address: address, URL: scheme + "://" + address, t: t, data: filepath.Join(t.TempDir(), name), health: "http://" + freeAddress(t)})
	}
	for i, s := range servers {
		s.arguments = append([]string{
			"--name", fmt.Sprintf("etcd-%d", i+1), "--data-dir", s.data, "--log-level", "error",
			"--listen-client-urls", s.URL, "--advertise-client-urls", s.URL,
			"--listen-metrics-urls", s.health, "--listen-peer-urls", "http://" + peers[i], "--initial-advertise-peer-urls", "http://" + peers[i],
			"--initial-cluster", strings.Join(names, ","),
		}, flags...)
		s.launch()
		t.Cleanup(func() { s.Kill() }) // the latest process
	}
	for _, s := range servers {
		s.await()
	}
	return servers
}

// Restart starts a server that has ended, with its data and flags, and further ones.
func (s *Server) Restart(flags ...string) {
	s.t.Helper()
	s.arguments = append(s.arguments, flags...)
	s.launch()
	s.await()
}

// Wipe removes the data of a server that has ended.
func (s *Server) Wipe() {
	s.t.Helper()
	if err := os.RemoveAll(s.data); err != nil {
		s.t.Fatal(err)
	}
}

// Snapshot copies the data of a server that has ended, and returns a function that sets the
// server, which must have ended again, back to that.
func (s *Server) Snapshot() (restore func()) {
	s.t.Helper()
	snapshot := filepath.Join(s.t.TempDir(), "snapshot")
	if err := os.CopyFS(snapshot, os.DirFS(s.data)); err != nil {
		s.t.Fatal(err)
	}
	return func() {
		s.t.Helper()
		s.Wipe()
		if err := os.CopyFS(s.data, os.DirFS(snapshot)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *Server) launch() {
	s.t.Helper()
	command := exec.Command(s.binary, s.arguments...)
	command.Env = append(os.Environ(), s.environment...)
	var err error
	if s.Child, err = real.StartChild(command, func() {}); err != nil {
		s.t.Fatal(err)
	}
}

// await waits until the server answers and has a leader. It listens before it has written that it
// is a member: a kill before that leaves data without one.
func (s *Server) await() {
	s.t.Helper()
	if !real.Await(s.t.Context(), patience, func() bool {
		response, err := client.Get(s.health + "/health")
		if err == nil {
			response.Body.Close()
		}
		return err == nil && response.StatusCode == http.StatusOK || !s.Alive()
	}) || !s.Alive() {
		s.t.Fatalf("etcd does not start: %v; it said:\n%s", s.Err(), s.Logs())
	}
}
