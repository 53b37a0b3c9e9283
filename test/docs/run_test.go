package docs

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a command may need until it succeeds: what it asks may still
// be starting.
const patience = 30 * time.Second

// TestCommandsOfTheGuides runs each command after a "$ " in a console block.
func TestCommandsOfTheGuides(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "hdsd")
	build := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", binary, "hdsd/cmd/hdsd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build, which has compiled all of it
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, d := range documents(t) {
		commands := d.commands()
		if len(commands) == 0 {
			continue
		}
		t.Run(d.path, func(t *testing.T) {
			t.Parallel()
			s := newShell(t, binary)
			if !starts(commands) {
				s.startExample()
			}
			for _, c := range commands {
				s.run(d.path, c)
				s.compareHeads(d.path, c)
			}
		})
	}
}

// command is one that a document says to run.
type command struct {
	code
	heads []string // of the columns of the table that it is shown to print
}

// commands lists what a document says to run.
func (d *document) commands() []command {
	var all []command
	for _, b := range d.blocks {
		if b.language != "console" {
			continue
		}
		for i, line := range b.lines {
			text, isCommand := strings.CutPrefix(line, "$ ")
			if !isCommand {
				continue
			}
			c := command{code: code{text, b.line + i}}
			if i+1 < len(b.lines) && table.MatchString(b.lines[i+1]) && strings.Contains(text, "hdsd") && !strings.Contains(text, "simulate") {
				c.heads = regexp.MustCompile(`  +`).Split(b.lines[i+1], -1)
			}
			all = append(all, c)
		}
	}
	return all
}

// table is the first line of one.
var table = regexp.MustCompile(`^[A-Z]+  +[A-Z]+  [A-Z ]+$`)

// starts tells whether a coordinator is among what the commands start.
func starts(commands []command) bool {
	for _, c := range commands {
		if strings.HasPrefix(c.text, "hdsd serve") {
			return true
		}
	}
	return false
}

// shell runs commands in a folder of its own, against addresses of its own.
type shell struct {
	t         *testing.T
	folder    string
	env       []string
	addresses *strings.Replacer
}

func newShell(t *testing.T, binary string) *shell {
	t.Helper()
	grpc, http := freeAddress(t), freeAddress(t)
	s := &shell{
		t: t, folder: t.TempDir(),
		addresses: strings.NewReplacer("127.0.0.1:18000", grpc, "127.0.0.1:18080", http),
	}
	s.env = append(os.Environ(), "HDSD_SERVER="+grpc, "PATH="+filepath.Join(s.folder, "bin")+":"+os.Getenv("PATH"))
	if err := os.Mkdir(filepath.Join(s.folder, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(s.folder, "bin", "hdsd")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(s.folder, "examples"), os.DirFS(filepath.Join(root, "examples"))); err != nil {
		t.Fatal(err)
	}
	s.readdress(filepath.Join(s.folder, "examples", "hdsd.yaml"))
	return s
}

// freeAddress gives an address of this machine on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// readdress makes a file use the shell's addresses.
func (s *shell) readdress(path string) {
	s.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	changed := s.addresses.Replace(string(text))
	if changed == string(text) {
		s.t.Fatalf("%s names none of the default addresses", path)
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// startExample starts the example's coordinator and three checkers.
func (s *shell) startExample() {
	s.background("hdsd serve -c examples/hdsd.yaml")
	for _, zone := range []string{"a", "b", "c"} {
		s.background("hdsd check --id checker-" + zone + " --zone " + zone)
	}
}

// background starts a command, which ends with the test.
func (s *shell) background(command string) {
	s.t.Helper()
	var out strings.Builder
	process := exec.Command("sh", "-c", "exec "+command)
	process.Dir, process.Env, process.Stdout, process.Stderr = s.folder, s.env, &out, &out
	if err := process.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := process.Process.Signal(syscall.SIGTERM); err != nil {
			s.t.Error(err)
		}
		err := process.Wait()
		if process.ProcessState.ExitCode() > 0 {
			s.t.Errorf("%s ended by itself: %v", command, err)
		}
		if s.t.Failed() {
			s.t.Logf("%s:\n%s", command, out.String())
		}
	})
}

// run runs a command until it succeeds.
func (s *shell) run(path string, c command) (out []byte) {
	s.t.Helper()
	command := s.addresses.Replace(c.text)
	if started, ok := strings.CutSuffix(command, " &"); ok {
		s.background(started)
		return nil
	}
	if program := strings.Fields(command)[0]; program != "bin/hdsd" {
		if _, err := exec.LookPath(program); err != nil && program != "hdsd" {
			s.t.Logf("%s:%d: %s is not installed", path, c.line, program)
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for {
		process := exec.CommandContext(ctx, "sh", "-c", command)
		process.Dir, process.Env = s.folder, s.env
		out, err := process.CombinedOutput()
		var exit *exec.ExitError
		switch {
		case err == nil:
			return out
		case errors.As(err, &exit) && exit.ExitCode() == 2, ctx.Err() != nil:
			s.t.Fatalf("%s:%d: %s: %v\n%s", path, c.line, command, err, out)
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			s.t.Fatalf("%s:%d: %s: %v\n%s", path, c.line, command, err, out)
		}
	}
}

// compareHeads holds the columns of a table that a document shows to those that the
// command has.
func (s *shell) compareHeads(path string, c command) {
	s.t.Helper()
	if c.heads == nil {
		return
	}
	all := command{code: code{c.text + " -o csv", c.line}}
	first, _, _ := strings.Cut(string(s.run(path, all)), "\n")
	for _, head := range c.heads {
		if name := strings.ReplaceAll(strings.ToLower(head), " ", "_"); !slices.Contains(strings.Split(first, ","), name) {
			s.t.Errorf("%s:%d shows a column %s; there are %s", path, c.line, head, first)
		}
	}
}
