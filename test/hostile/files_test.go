package hostile

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hdsd/test/envoy"
	"hdsd/test/fleet"
)

// traps are cluster files that nobody should write: unreadable ones, and good ones with
// something added.
func traps(good string) map[string]string {
	bomb := &strings.Builder{}
	bomb.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	bomb.WriteString("resources: *a11\n")
	return map[string]string{
		"garbage":       string(garbage(1, 100_000)),
		"zeros":         string(make([]byte, 1<<20)),
		"deep":          "resources: " + strings.Repeat("[", 200_000),
		"deep maps":     "resources:\n- " + strings.Repeat("{a: ", 100_000) + strings.Repeat("}", 100_000),
		"alias bomb":    bomb.String(),
		"endless alias": good + "- &a [*a]\n",
		"huge":          good + strings.Repeat("- {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, nam: x}\n", 5000),
		"long line":     good + "- " + strings.Repeat("x", 4<<20) + "\n",
		"other things":  "resources: 7\n",
		"invalid text":  good + "- {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: \"" + broken + "\"}\n",
	}
}

func TestTrapsInClusterFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for name, text := range traps(s.clusters) {
		t.Run(name, func(t *testing.T) {
			t.Run("on reload", func(t *testing.T) {
				problems := func(there bool) func() bool {
					return func() bool { f, err := s.ask(); return err == nil && f.problems > 0 == there }
				}
				s.under(t, func(t *testing.T) {
					s.SetClusters(text)
					envoy.Eventually(t, fleet.Patience, "the file to be refused", problems(true))
				})
				s.SetClusters(s.clusters)
				envoy.Eventually(t, fleet.Patience, "the good file to be taken", problems(false))
				s.unharmed(t)
			})
			t.Run("as a start would read it", func(t *testing.T) {
				started := time.Now()
				said, status, memory := run(t, fleet.Plain(t), "validate", func(dir string) {
					write(t, filepath.Join(dir, "clusters.yaml"), []byte(text))
				})
				if status != 1 || !strings.Contains(said, "clusters.yaml") || len(said) > 4<<20 {
					t.Errorf("hdsd ends with %d and says, in %d bytes: %.500s", status, len(said), said)
				}
				t.Logf("refused after %v with %d MB", time.Since(started).Round(time.Millisecond), memory>>20)
				if memory > 3<<30 { // that of this process counts, too, until the other begins
					t.Errorf("%d MB were needed", memory>>20)
				}
			})
		})
	}
}

func TestWhatIsNoDatabase(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for name, plant := range map[string]func(dir string){
		"garbage":  func(dir string) { write(t, filepath.Join(dir, "hdsd.db"), garbage(2, 100_000)) },
		"text":     func(dir string) { write(t, filepath.Join(dir, "hdsd.db"), []byte("resources: []\n")) },
		"a folder": func(dir string) { mkdir(t, filepath.Join(dir, "hdsd.db")) },
		"truncated": func(dir string) {
			write(t, filepath.Join(dir, "hdsd.db"), truncated(t, filepath.Join(s.Dir, "data", "hdsd.db")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			said, status, _ := run(t, fleet.Plain(t), "serve", func(dir string) {
				mkdir(t, filepath.Join(dir, "data"))
				plant(filepath.Join(dir, "data"))
			})
			if status != 1 || !strings.Contains(said, "hdsd.db") || strings.Contains(said, "goroutine ") {
				t.Errorf("hdsd ends with %d and says: %.1000s", status, said)
			}
		})
	}
	said, status, _ := run(t, fleet.Plain(t), "serve", func(dir string) { write(t, filepath.Join(dir, "data"), []byte("x")) })
	if status != 1 || !strings.Contains(said, "data") {
		t.Errorf("with a file for a folder, hdsd ends with %d and says: %.1000s", status, said)
	}
	s.unharmed(t)
}

// run runs a program of hdsd in a prepared folder, and returns its output, its exit status
// and its memory.
func run(t *testing.T, binary, what string, prepare func(dir string)) (said string, status int, memory int64) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "hdsd.yaml"), []byte("grpc: {address: \"127.0.0.1:0\"}\nhttp: {address: \"127.0.0.1:0\"}\ndata_dir: data\n"+
		"sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]\n"))
	write(t, filepath.Join(dir, "clusters.yaml"), []byte("resources: []\n"))
	prepare(dir)
	command := exec.CommandContext(t.Context(), binary, what, "-c", filepath.Join(dir, "hdsd.yaml"))
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	stop := time.AfterFunc(fleet.Patience, func() { _ = command.Process.Kill() }) // it may be gone already
	defer stop.Stop()
	_ = command.Run() // its state says how it ended
	if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		memory = usage.Maxrss << 10
	}
	return out.String(), command.ProcessState.ExitCode(), memory
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

// truncated returns the first pages of a file.
func truncated(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text[:3*os.Getpagesize()]
}
