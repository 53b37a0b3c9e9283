package replicas

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	real "hdsd/internal/demo/envoy"
	"hdsd/test/envoy"
	"hdsd/test/fleet"
)

// patience bounds each wait on a busy machine.
const patience = time.Minute

// process is one replica: a process with its folder and addresses, which stay the same over restarts.
type process struct {
	*real.Child // the running process, or the last one; nil before the first start

	t                testing.TB
	id, dir          string
	binary           string // of the next start
	grpc, http, peer string
	hds, advertise   string   // addresses for checkers and for other replicas
	logs             []string // of earlier processes
	client           http.Client
	etcd, ttl        string
	grace            string // assignment.reconnect_grace
	probation        string // checkers.probation
}

// newProcess prepares a replica. It does not run yet.
func newProcess(t testing.TB, id, etcd, ttl, clusters string) *process {
	p := &process{
		t: t, id: id, dir: t.TempDir(), binary: fleet.Plain(t), grpc: envoy.FreeAddress(t), http: envoy.FreeAddress(t), peer: envoy.FreeAddress(t),
		client: http.Client{Timeout: 5 * time.Second}, etcd: etcd, ttl: ttl, grace: "2s", probation: "30s",
	}
	p.hds, p.advertise = p.grpc, p.peer
	p.write("clusters.yaml", clusters)
	t.Cleanup(func() {
		if p.Child != nil {
			_ = p.Resume() // a paused process ends, too
			p.Kill()
			if t.Failed() {
				t.Logf("%s said:\n%s", id, tail(strings.Join(append(p.logs, p.Logs()), "---- restart\n"), 12_000))
			}
		}
	})
	return p
}

// tail returns the last part of a text.
func tail(text string, size int) string { return text[max(0, len(text)-size):] }

// file returns the path of a file in the folder of the replica.
func (p *process) file(name string) string { return filepath.Join(p.dir, name) }

func (p *process) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(p.file(name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// launch starts the process, and does not wait.
func (p *process) launch() {
	p.t.Helper()
	if p.Child != nil {
		p.logs = append(p.logs, p.Logs())
	}
	p.write("hdsd.yaml", fmt.Sprintf("node_id: %s\ngrpc: {address: %q}\nhttp: {address: %q}\ndata_dir: data\n"+
		"sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]\n"+
		"replication: {etcd: {endpoints: [%s]}, peer: {address: %q, advertise: %q}, session_ttl: %s}\n"+
		"reporting: {interval: 1s}\nassignment: {settle: 0.5s, reconnect_grace: %s}\ncheckers: {probation: %s}\n",
		p.id, p.grpc, p.http, p.etcd, p.peer, p.advertise, p.ttl, p.grace, p.probation))
	var err error
	if p.Child, err = real.StartChild(exec.Command(p.binary, "serve", "-c", p.file("hdsd.yaml")), func() {}); err != nil {
		p.t.Fatal(err)
	}
}

// start starts the process, and waits until it is ready.
func (p *process) start() {
	p.t.Helper()
	p.launch()
	p.ready()
}

// ready waits until the replica is ready.
func (p *process) ready() {
	p.t.Helper()
	p.until("ready", func() bool { status, _ := p.readiness(); return status == http.StatusOK })
}

// until waits for a condition of a running process.
func (p *process) until(what string, condition func() bool) {
	p.t.Helper()
	envoy.Eventually(p.t, patience, p.id+": "+what, func() bool {
		if !p.Alive() {
			p.t.Fatalf("%s ended: %v\n%s", p.id, p.Err(), tail(p.Logs(), 4000))
		}
		return condition()
	})
}

// readiness returns the answer of /readyz; 0 without one.
func (p *process) readiness() (status int, text string) {
	return p.ask("/readyz")
}

func (p *process) ask(path string) (status int, text string) {
	answer, err := p.client.Get("http://" + p.http + path)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(body)
}

// get reads an answer of the API.
func (p *process) get(path string, into any) error {
	status, text := p.ask(path)
	if status != http.StatusOK {
		return fmt.Errorf("GET %s of %s: %d: %s", path, p.id, status, text)
	}
	return json.Unmarshal([]byte(text), into)
}

// leads reports whether the process says that it leads.
func (p *process) leads() bool { return p.metric("hdsd_replica_leads") == "1" }

// metric returns the value of a metric without labels; empty without one.
func (p *process) metric(name string) string {
	_, text := p.ask("/metrics")
	_, after, _ := strings.Cut(text, "\n"+name+" ")
	value, _, _ := strings.Cut(after, "\n")
	return value
}

// transition is an entry of the history.
type transition struct{ Time, Cluster, Address, From, To, Reason string }

// history reads all transitions.
func (p *process) history() (all []transition, err error) {
	for token := ""; ; {
		var answer struct {
			Transitions   []transition
			NextPageToken string
		}
		if err := p.get("/v1/transitions?pageSize=10000&pageToken="+url.QueryEscape(token), &answer); err != nil {
			return nil, err
		}
		all = append(all, answer.Transitions...)
		if token = answer.NextPageToken; token == "" {
			return all, nil
		}
	}
}

// audited is an entry of the audit.
type audited struct{ Time, Author, Action, Target, After string }

// audit reads the whole audit, the earliest first, without the backups, which only the replica knows that made them.
func (p *process) audit() (all []audited, err error) {
	for token := ""; ; {
		var answer struct {
			Entries       []audited
			NextPageToken string
		}
		if err := p.get("/v1/audit?pageSize=1000&pageToken="+url.QueryEscape(token), &answer); err != nil {
			return nil, err
		}
		for _, e := range answer.Entries {
			if e.Action != "Backup" {
				all = append(all, e)
			}
		}
		if token = answer.NextPageToken; token == "" {
			return all, nil
		}
	}
}
