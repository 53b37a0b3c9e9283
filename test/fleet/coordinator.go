package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hdsd/test/envoy"
)

// Patience is how long anything may take on a busy machine.
const Patience = 60 * time.Second

// Coordinator is an hdsd process, its files and its addresses, which stay the same
// across restarts.
type Coordinator struct {
	Dir        string // holds hdsd.yaml, clusters.yaml and data
	GRPC, HTTP string // addresses
	Binary     string // path of the hdsd that runs

	// Launch starts the process, for tests that stand around it. Nil: its Start.
	Launch func(*exec.Cmd) error

	t       testing.TB
	command *exec.Cmd
	exited  chan struct{}
	logs    lockedBuffer
}

// lockedBuffer is a buffer that a process writes and a test reads.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Prepare chooses addresses and writes the configuration: defaults and extra (YAML).
// Nothing runs yet.
func Prepare(t testing.TB, clusters, extra string) *Coordinator {
	t.Helper()
	c := &Coordinator{t: t, Binary: binary(t), Dir: t.TempDir(), GRPC: envoy.FreeAddress(t), HTTP: envoy.FreeAddress(t)}
	config := fmt.Sprintf("node_id: hdsd-test\ngrpc: {address: %q}\nhttp: {address: %q}\ndata_dir: data\n"+
		"sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]\n%s\n", c.GRPC, c.HTTP, extra)
	c.write("hdsd.yaml", config)
	c.SetClusters(clusters)
	t.Cleanup(func() {
		c.Kill()
		if t.Failed() {
			t.Logf("hdsd said:\n%s", c.logs.String())
		}
	})
	return c
}

func (c *Coordinator) write(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.Dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		c.t.Fatal(err)
	}
}

// Configure puts other settings in the place of some. It fails the test if these are not there.
func (c *Coordinator) Configure(from, to string) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Dir, "hdsd.yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	if !strings.Contains(string(text), from) {
		c.t.Fatalf("the configuration has no %q", from)
	}
	c.write("hdsd.yaml", strings.Replace(string(text), from, to, 1))
}

// SetClusters moves another cluster file into place.
func (c *Coordinator) SetClusters(text string) {
	c.t.Helper()
	c.write("clusters.yaml", text)
}

// Start runs hdsd and waits until it is ready.
func (c *Coordinator) Start() {
	c.t.Helper()
	c.command = exec.Command(c.Binary, "serve", "-c", filepath.Join(c.Dir, "hdsd.yaml"))
	c.command.Stdout, c.command.Stderr = &c.logs, &c.logs
	c.command.Env = append(os.Environ(), "GORACE=halt_on_error=1")
	c.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	launch := c.command.Start
	if c.Launch != nil {
		launch = func() error { return c.Launch(c.command) }
	}
	if err := launch(); err != nil {
		c.t.Fatal(err)
	}
	c.exited = make(chan struct{})
	go func(command *exec.Cmd, exited chan struct{}) {
		_ = command.Wait() // its state is read from ProcessState
		close(exited)
	}(c.command, c.exited)
	envoy.Eventually(c.t, Patience, "hdsd to be ready", func() bool {
		select {
		case <-c.exited:
			c.t.Fatalf("hdsd ended: %v\n%s", c.command.ProcessState, c.logs.String())
		default:
		}
		response, err := http.Get("http://" + c.HTTP + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

// Kill ends hdsd as kill -9 does.
func (c *Coordinator) Kill() {
	if c.command != nil {
		_ = c.command.Process.Kill() // it may have ended already
		<-c.exited
	}
}

// Terminate asks hdsd to stop, and returns its exit status and how long it took.
func (c *Coordinator) Terminate() (status int, took time.Duration) {
	c.t.Helper()
	started := time.Now()
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	select {
	case <-c.exited:
	case <-time.After(Patience):
		c.t.Fatal("hdsd does not stop")
	}
	return c.command.ProcessState.ExitCode(), time.Since(started)
}

// Signal sends hdsd a signal.
func (c *Coordinator) Signal(s os.Signal) {
	c.t.Helper()
	if err := c.command.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// PID returns hdsd's process id.
func (c *Coordinator) PID() int { return c.command.Process.Pid }

// Logs returns hdsd's log so far.
func (c *Coordinator) Logs() string { return c.logs.String() }

// Observation, Endpoint and the rest are the JSON of /v1.
type (
	// Observation is one checker's vote.
	Observation struct {
		Checker, Status string
		HTTPStatusCode  int `json:"httpStatusCode"`
		Disbelieved     string
	}
	// Endpoint is an endpoint and its verdict.
	Endpoint struct {
		Cluster, Address, Health, Since, Reason string
		Observations                            []Observation
	}
	// Transition is a recorded change.
	Transition struct {
		Time, Cluster, Address, From, To, Reason string
		Observations                             []Observation
	}
	// Cluster is a cluster and its counts.
	Cluster struct {
		Name                                   string
		Checked                                bool
		Endpoints, Healthy, Unhealthy, Unknown int
		Quarantined                            []struct{ Address, Reason string }
		RejectedReason                         string
	}
	// Checker is a checker and its state.
	Checker struct {
		ID, Version, Specifier string
		Connected              bool
		Abilities              []string
		AssignedEndpoints      int
		StrangeReports         string
		Trusted                bool
		DistrustReason         string
	}
)

// Endpoints queries the endpoints of a cluster, by address.
func (c *Coordinator) Endpoints(cluster string) map[string]Endpoint {
	c.t.Helper()
	var answer struct{ Endpoints []Endpoint }
	c.ask("/v1/endpoints?cluster="+url.QueryEscape(cluster), &answer)
	found := map[string]Endpoint{}
	for _, e := range answer.Endpoints {
		found[e.Address] = e
	}
	return found
}

// Transitions queries the history of a cluster, all pages.
func (c *Coordinator) Transitions(cluster string) (all []Transition) {
	c.t.Helper()
	for token := ""; ; {
		var answer struct {
			Transitions   []Transition
			NextPageToken string
		}
		c.ask("/v1/transitions?cluster="+url.QueryEscape(cluster)+"&pageToken="+url.QueryEscape(token), &answer)
		all = append(all, answer.Transitions...)
		if token = answer.NextPageToken; token == "" {
			return all
		}
	}
}

// Clusters queries all clusters, by name.
func (c *Coordinator) Clusters() map[string]Cluster {
	c.t.Helper()
	found := map[string]Cluster{}
	for token := ""; ; {
		var answer struct {
			Clusters      []Cluster
			NextPageToken string
		}
		c.ask("/v1/clusters?pageSize=10000&pageToken="+url.QueryEscape(token), &answer)
		for _, k := range answer.Clusters {
			found[k.Name] = k
		}
		if token = answer.NextPageToken; token == "" {
			return found
		}
	}
}

// Checkers queries all checkers, by id.
func (c *Coordinator) Checkers() map[string]Checker {
	c.t.Helper()
	var answer struct{ Checkers []Checker }
	c.ask("/v1/checkers?pageSize=10000", &answer)
	found := map[string]Checker{}
	for _, k := range answer.Checkers {
		found[k.ID] = k
	}
	return found
}

func (c *Coordinator) ask(path string, into any) {
	c.t.Helper()
	if err := c.Get(path, into); err != nil {
		c.t.Fatal(err)
	}
}

// Get queries hdsd over REST.
func (c *Coordinator) Get(path string, into any) error {
	response, err := http.Get("http://" + c.HTTP + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", path, response.Status, body)
	}
	return json.Unmarshal(body, into)
}

// Metric returns a metric without labels.
func (c *Coordinator) Metric(name string) float64 {
	c.t.Helper()
	response, err := http.Get("http://" + c.HTTP + "/metrics")
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n"+name+" ")
	line, _, _ := strings.Cut(rest, "\n")
	value, err := strconv.ParseFloat(line, 64)
	if err != nil {
		c.t.Fatalf("metric %s: %v", name, err)
	}
	return value
}

// Operate runs an operator's command and gives what it prints.
func (c *Coordinator) Operate(args ...string) string {
	c.t.Helper()
	out, err := exec.CommandContext(c.t.Context(), c.Binary, append(args, "--server", c.GRPC)...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("hdsd %v: %v\n%s", args, err, out)
	}
	return string(out)
}
