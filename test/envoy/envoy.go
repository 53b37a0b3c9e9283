package envoy

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"hdsd/health"
	real "hdsd/internal/demo/envoy"
)

// Version is the release that tests use where the release does not matter.
const Version = real.Version

// Checker says how an Envoy that checks endpoints is started.
type Checker struct {
	ID       string // node id
	HDS      string // host:port of the HDS server
	Version  string // of Envoy; Version where empty
	Locality health.Locality
	Metadata map[string]string
	Args     []string // further arguments
	Folder   string   // where it works; one of its own where empty
}

// DataPlane says how an Envoy that serves traffic is started.
type DataPlane struct {
	ID       string // node id
	ADS      string // host:port of the ADS server
	Version  string // of Envoy; Version where empty
	Locality health.Locality
	Delta    bool     // delta xDS, else state of the world
	CDS      bool     // clusters come over ADS, else those named in Clusters are in the bootstrap
	Clusters []string // EDS clusters with endpoints over ADS
	Route    string   // the cluster that the listener routes to; the first of Clusters where empty
	Args     []string // further arguments
}

// Process is a running Envoy that ends with its test.
type Process struct{ *real.Process }

// StartChecker starts an Envoy that takes its health checks from an HDS
// server. It returns when the Envoy runs, connected or not.
func StartChecker(t testing.TB, c Checker) *Process {
	t.Helper()
	return started(t)(real.StartChecker(t.Context(), real.Checker{
		Binary: install(t, c.Version), ID: c.ID, HDS: c.HDS, Locality: c.Locality, Metadata: c.Metadata, Args: c.Args, Folder: c.Folder,
	}))
}

// StartDataPlane starts an Envoy that takes endpoints over ADS and routes
// HTTP requests to Process.Listen to one cluster. It returns when the Envoy
// runs, connected or not.
func StartDataPlane(t testing.TB, d DataPlane) *Process {
	t.Helper()
	return started(t)(real.StartDataPlane(t.Context(), real.DataPlane{
		Binary: install(t, d.Version), ID: d.ID, ADS: d.ADS, Locality: d.Locality, Delta: d.Delta, CDS: d.CDS,
		Clusters: d.Clusters, Listen: FreeAddress(t), Route: d.Route, Args: d.Args,
	}))
}

// started hands a process to a test, which ends it.
func started(t testing.TB) func(*real.Process, error) *Process {
	return func(p *real.Process, err error) *Process {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			p.Kill()
			if t.Failed() {
				t.Logf("Envoy %s ended: %v; it said:\n%s", p.ID, p.Err(), p.Logs())
			}
		})
		return &Process{p}
	}
}

// Binary gives the path of the Envoy that tests use.
func Binary(t testing.TB) string {
	t.Helper()
	return install(t, Version)
}

// Validate has the Envoy of a release say what it thinks of a bootstrap.
func Validate(t testing.TB, version string, bootstrap []byte) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bootstrap.yaml") // YAML holds JSON, too
	if err := os.WriteFile(path, bootstrap, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), install(t, version), "--mode", "validate", "-l", "warning", "-c", path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("Envoy %s: %w\n%s", version, err, out)
	}
	return nil
}

// Start starts the Envoy of a release (Version where empty) with a bootstrap,
// which has it choose its admin port.
func Start(t testing.TB, version, id string, bootstrap []byte) *Process {
	t.Helper()
	return started(t)(real.Start(t.Context(), install(t, version), id, bootstrap))
}

// install gives the path of the Envoy of a release, fetched into the
// repository's .cache where it is not there yet.
func install(t testing.TB, version string) string {
	t.Helper()
	root, err := Repository()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := real.Install(t.Context(), filepath.Join(root, ".cache"), cmp.Or(version, Version))
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// Repository gives the folder that holds cmd/hdsd, from the working folder up. Some tests are
// modules of their own in folders below it.
func Repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "cmd", "hdsd")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no cmd/hdsd above the working folder: run inside the repository")
		}
	}
}

// Stop asks the process to end and waits until it is gone.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	if err := p.Process.Stop(); err != nil {
		t.Error(err)
	}
}

// Stats gives the counters and gauges whose names match a regular expression.
func (p *Process) Stats(t testing.TB, filter string) map[string]uint64 {
	t.Helper()
	stats, err := p.TryStats(filter)
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

// ConfigDump gives /config_dump, endpoints included.
func (p *Process) ConfigDump(t testing.TB) []byte {
	t.Helper()
	dump, err := p.Get("/config_dump?include_eds")
	if err != nil {
		t.Fatal(err)
	}
	return dump
}

// Clusters gives what the Envoy thinks of each endpoint, by cluster and
// address. (An address that a cluster holds twice is there once.)
func (p *Process) Clusters(t testing.TB) map[string]map[string]Host {
	t.Helper()
	clusters, err := p.TryClusters()
	if err != nil {
		t.Fatal(err)
	}
	return clusters
}

// Eventually fails the test when a condition does not come true in time.
func Eventually(t testing.TB, patience time.Duration, what string, condition func() bool) {
	t.Helper()
	if !Await(patience, condition) {
		t.Fatalf("waited %v in vain for %s", patience, what)
	}
}

// Await looks at a condition until it is true, or until patience ends, which it tells by
// false.
func Await(patience time.Duration, condition func() bool) bool {
	return real.Await(context.Background(), patience, condition)
}
