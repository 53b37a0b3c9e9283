package file_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hdsd/source"
	"hdsd/source/file"
)

// watcher is a running source whose sets are waited for.
type watcher struct {
	t    *testing.T
	sets chan *source.Set
}

func watch(t *testing.T, options file.Options) *watcher {
	t.Helper()
	return watchSource(t, file.New(options).Hasten())
}

func watchSource(t *testing.T, s *file.Source) *watcher {
	t.Helper()
	w := &watcher{t: t, sets: make(chan *source.Set, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- s.Run(ctx, func(set *source.Set) { w.sets <- set })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
	return w
}

func (w *watcher) next() *source.Set {
	w.t.Helper()
	select {
	case set := <-w.sets:
		return set
	case <-time.After(time.Minute):
		w.t.Fatal("no set")
		return nil
	}
}

func names(set *source.Set) string {
	all := make([]string, len(set.Clusters))
	for i, c := range set.Clusters {
		all[i] = c.Name
	}
	return strings.Join(all, " ")
}

// expect waits for a set with just these clusters; what comes before it must
// be one of the transitional ones.
func (w *watcher) expect(want string, transitional ...string) *source.Set {
	w.t.Helper()
	for {
		set := w.next()
		got := names(set)
		if got == want {
			return set
		}
		found := false
		for _, each := range transitional {
			found = found || each == got
		}
		if !found {
			w.t.Fatalf("got clusters %q, %v, want %q", got, set.Problems, want)
		}
	}
}

func clusters(names ...string) string {
	return "static_resources: {clusters: [{name: " + strings.Join(names, "}, {name: ") + "}]}\n"
}

// move puts a file in place atomically.
func move(t *testing.T, path, content string) {
	t.Helper()
	write(t, path+".new", content)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestFileMovedIntoPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, clusters("a", "b"))
	w := watch(t, file.Options{Name: "local", Path: path})
	first := w.expect("a b")
	write(t, path, clusters("in-place"))
	move(t, path, clusters("b", "c"))
	second := w.expect("b c")
	if first.Clusters[1] != second.Clusters[0] || second.Source != "local" {
		t.Error("b is another now")
	}
	move(t, path, "resources: [")
	third := w.expect("b c")
	if third.Clusters[0] != second.Clusters[0] || len(third.Problems) != 1 || third.Problems[0].File != path {
		t.Errorf("got %v, %v", third.Clusters, third.Problems)
	}
	move(t, path, clusters("b", "c"))
	if fourth := w.expect("b c"); len(fourth.Problems) != 0 || fourth.Clusters[0] != second.Clusters[0] {
		t.Errorf("got %v, %v", fourth.Clusters, fourth.Problems)
	}
}

// volume does what the kubelet does for a ConfigMap: a folder of the version,
// and a link to it that is replaced.
func volume(t *testing.T, folder, version, content string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(folder, version), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, version, "clusters.yaml"), content)
	link := filepath.Join(folder, "..data")
	if err := os.Symlink(version, link+"_tmp"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+"_tmp", link); err != nil {
		t.Fatal(err)
	}
	_ = os.Symlink(filepath.Join("..data", "clusters.yaml"), filepath.Join(folder, "clusters.yaml")) // there from the second on
}

func TestVolumeWithWatchedDirectory(t *testing.T) {
	folder := t.TempDir()
	volume(t, folder, "..1", clusters("a"))
	w := watch(t, file.Options{Path: filepath.Join(folder, "clusters.yaml"), WatchedDirectory: folder})
	w.expect("a")
	volume(t, folder, "..2", clusters("b"))
	w.expect("b")
	if err := os.RemoveAll(filepath.Join(folder, "..1")); err != nil {
		t.Fatal(err)
	}
	volume(t, folder, "..3", clusters("c"))
	w.expect("c")
}

func TestVolumeAsFolder(t *testing.T) {
	folder := t.TempDir()
	volume(t, folder, "..1", clusters("a"))
	w := watch(t, file.Options{Path: folder})
	w.expect("a")
	volume(t, folder, "..2", clusters("b"))
	w.expect("b")
}

func TestFolderWhoseFilesComeAndGo(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "a.yaml"), clusters("a"))
	w := watch(t, file.Options{Path: folder})
	w.expect("a")
	move(t, filepath.Join(folder, "b.yaml"), clusters("b"))
	w.expect("a b")
	if err := os.Remove(filepath.Join(folder, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	w.expect("b")
	if err := os.Remove(filepath.Join(folder, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	if set := w.expect("b"); len(set.Problems) != 1 {
		t.Errorf("got %v", set.Problems)
	}
}

func TestFolderThatIsReplaced(t *testing.T) {
	parent := t.TempDir()
	folder, next := filepath.Join(parent, "now"), filepath.Join(parent, "next")
	for dir, name := range map[string]string{folder: "a", next: "b"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "a.yaml"), clusters(name))
	}
	w := watch(t, file.Options{Path: filepath.Join(folder, "a.yaml")})
	w.expect("a")
	if err := os.Rename(folder, folder+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, folder); err != nil {
		t.Fatal(err)
	}
	w.expect("b", "a")
	move(t, filepath.Join(folder, "a.yaml"), clusters("c"))
	w.expect("c")
}

func TestRunDeliversOnlyChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, clusters("a"))
	s := file.New(file.Options{Path: path}).Hasten()
	if _, err := s.Load(); err != nil {
		t.Fatal(err)
	}
	move(t, path, clusters("b")) // between Load and Run
	ctx, cancel := context.WithCancel(t.Context())
	var got []string
	err := s.Run(ctx, func(set *source.Set) {
		got = append(got, names(set))
		cancel()
	})
	if err != nil || len(got) != 1 || got[0] != "b" {
		t.Errorf("got %v, %v", got, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ended, func(set *source.Set) { t.Errorf("got %s again", names(set)) }); err != nil {
		t.Error(err)
	}
}

// TestLoadDoesNotDeliver: a Load whose result is not used, such as by a refused reload,
// does not change what Run delivers.
func TestLoadDoesNotDeliver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, clusters("a"))
	s := file.New(file.Options{Path: path}).Hasten()
	w := watchSource(t, s)
	first := w.expect("a")
	if s.Latest() != first {
		t.Error("what Run handed on is not the latest")
	}
	write(t, path, clusters("in-place"))
	loaded, err := s.Load()
	if err != nil || s.Latest() != loaded {
		t.Errorf("loaded %v, %v, and it is not the latest", loaded, err)
	}
	move(t, path, "resources: [")
	if set := w.expect("a"); len(set.Problems) != 1 {
		t.Errorf("got %v", set.Problems)
	}
	move(t, path, clusters("b"))
	if set := w.expect("b"); s.Latest() != set {
		t.Error("what Run handed on is not the latest")
	}
}

func TestRunWithoutFiles(t *testing.T) {
	folder := t.TempDir()
	never := func(*source.Set) { t.Error("a set of nothing") }
	if err := file.New(file.Options{Path: filepath.Join(folder, "a.yaml")}).Run(t.Context(), never); err == nil {
		t.Error("a missing file was no error")
	}
	if err := file.New(file.Options{Path: filepath.Join(folder, "none", "a.yaml")}).Run(t.Context(), never); err == nil {
		t.Error("a missing folder was no error")
	}
}
