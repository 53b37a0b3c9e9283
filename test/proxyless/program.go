package proxyless

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	real "hdsd/internal/demo/envoy"
	"hdsd/test/envoy"
)

// Language is that of a client, of which there is one program each.
type Language string

// The languages. Python's client is that of C-core.
const (
	Golang Language = "go"
	Python Language = "python"
	Java   Language = "java"
	NodeJS Language = "js"
)

// Languages are all of them.
func Languages() []Language { return []Language{Golang, Python, Java, NodeJS} }

// Call is one that a program has made.
type Call struct {
	Target       string `json:"target"`
	Peer         string `json:"peer"`  // the address of the server that answered
	Error        string `json:"error"` // "CODE: text"; empty: the call was answered
	Milliseconds int    `json:"milliseconds"`
}

// Calls says how a program calls each of its targets: one call after the other.
type Calls struct {
	Deadline time.Duration
	Pause    time.Duration // after a call
	Targets  []string
}

// Program is a running client that calls its targets.
type Program struct {
	Language Language

	t testing.TB

	mu  sync.Mutex
	all []Call
}

// Start runs the client of a language. It ends with its test.
func Start(t testing.TB, language Language, b Bootstrap, calls Calls) *Program {
	t.Helper()
	bootstrap, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	command := language.command(t)
	arguments := append([]string{strconv.Itoa(int(calls.Deadline.Milliseconds())), strconv.Itoa(int(calls.Pause.Milliseconds()))}, calls.Targets...)
	ctx, cancel := context.WithCancel(context.Background())
	process := exec.CommandContext(ctx, command[0], slices.Concat(command[1:], arguments)...)
	process.Env = append(os.Environ(), "GRPC_XDS_BOOTSTRAP_CONFIG="+string(bootstrap))
	var said bytes.Buffer
	process.Stderr = &said
	input, err := process.StdinPipe() // a program ends with it
	if err != nil {
		t.Fatal(err)
	}
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Program{Language: language, t: t}
	var read sync.WaitGroup
	read.Go(func() { p.read(bufio.NewScanner(output)) })
	t.Cleanup(func() {
		input.Close()
		cancel()
		read.Wait()
		_ = process.Wait() // it was killed
		if t.Failed() {
			t.Logf("%s said:\n%s", language, said.String())
		}
	})
	return p
}

func (p *Program) read(lines *bufio.Scanner) {
	for lines.Scan() {
		var c Call
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			p.t.Errorf("%s printed %q: %v", p.Language, lines.Text(), err)
			return
		}
		p.mu.Lock()
		p.all = append(p.all, c)
		p.mu.Unlock()
	}
}

// Made returns the calls so far.
func (p *Program) Made() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

// Latest returns the latest call to a target, if there was one.
func (p *Program) Latest(target string) (c Call, made bool) {
	all := p.Made()
	slices.Reverse(all)
	if i := slices.IndexFunc(all, func(c Call) bool { return c.Target == target }); i >= 0 {
		return all[i], true
	}
	return Call{}, false
}

// Await waits until so many calls in succession to each target, made from now on, are as wanted.
func (p *Program) Await(what string, calls int, wanted func(Call) bool, targets ...string) {
	p.t.Helper()
	from := len(p.Made())
	envoy.Eventually(p.t, time.Minute, fmt.Sprintf("%s: %s", p.Language, what), func() bool {
		for _, target := range targets {
			row := 0
			for _, c := range p.Made()[from:] {
				if c.Target == target {
					if row++; !wanted(c) {
						row = 0
					}
				}
			}
			if row < calls {
				return false
			}
		}
		return true
	})
}

// Answered tells whether a call was answered.
func Answered(c Call) bool { return c.Error == "" }

// command returns what runs the client of a language, which it fetches or builds if need be.
func (l Language) command(t testing.TB) []string {
	t.Helper()
	root, err := envoy.Repository()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(root, "test", "proxyless", "clients", string(l))
	cache := filepath.Join(root, ".cache", "proxyless-"+string(l))
	command, err := l.install(source, cache, t.TempDir())
	if err != nil {
		t.Fatalf("the gRPC client for %s: %v", l, err)
	}
	return command
}

// install makes a client. What it fetches goes to a cache that all tests share, unless that is there
// already.
func (l Language) install(source, cache, folder string) (command []string, err error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	unlock, err := real.Lock(filepath.Join(cache, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	venv, jars := filepath.Join(cache, "venv"), filepath.Join(cache, "jars")
	switch l {
	case Python:
		err = once(source, cache, "requirements.txt", [][]string{
			{"python3", "-m", "venv", "--clear", venv},
			{filepath.Join(venv, "bin", "pip"), "install", "-q", "--disable-pip-version-check", "-r", filepath.Join(source, "requirements.txt")},
		})
		return []string{filepath.Join(venv, "bin", "python3"), filepath.Join(source, "client.py")}, err
	case Java:
		err = once(source, cache, "pom.xml", [][]string{
			{"java", "--version"},
			{"mvn", "-q", "-B", "-f", filepath.Join(source, "pom.xml"), "dependency:copy-dependencies", "-DoutputDirectory=" + jars},
		})
		return []string{"java", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(jars, "*"), filepath.Join(source, "Client.java")}, err
	case NodeJS:
		for _, name := range []string{"package.json", "client.js"} {
			text, err := os.ReadFile(filepath.Join(source, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(cache, name), text, 0o600)
			}
			if err != nil {
				return nil, err
			}
		}
		err = once(source, cache, "package-lock.json", [][]string{
			{"cp", filepath.Join(source, "package-lock.json"), cache},
			{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"},
		})
		return []string{"node", filepath.Join(cache, "client.js")}, err
	default:
		binary := filepath.Join(folder, "client")
		return []string{binary}, run(source, []string{"go", "build", "-o", binary, "."})
	}
}

// once runs commands unless they have succeeded for a file of the same text.
func once(source, cache, name string, commands [][]string) error {
	text, err := os.ReadFile(filepath.Join(source, name))
	if err != nil {
		return err
	}
	mark := filepath.Join(cache, "installed")
	if done, err := os.ReadFile(mark); err == nil && bytes.Equal(done, text) {
		return nil
	}
	for _, command := range commands {
		if err := run(cache, command); err != nil {
			return err
		}
	}
	return os.WriteFile(mark, text, 0o600)
}

func run(folder string, command []string) error {
	if _, err := exec.LookPath(command[0]); err != nil {
		return fmt.Errorf("it needs %s on this machine (CONTRIBUTING.md says what tests need): %w", filepath.Base(command[0]), err)
	}
	c := exec.Command(command[0], command[1:]...) //nolint:gosec // the commands above
	c.Dir = folder
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", command, err, out)
	}
	return nil
}
