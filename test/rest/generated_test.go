package rest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGeneratedIsOfTheseProtos makes the Go code and the OpenAPI document
// again: neither can be behind the protos and their comments.
func TestGeneratedIsOfTheseProtos(t *testing.T) {
	for _, source := range []string{"proto", "tools"} {
		files(t, filepath.Join("..", "..", source)) // or go test would call an old result good
	}
	out := t.TempDir()
	command := exec.Command("go", "run", "./protogen", "..", out)
	command.Dir = filepath.Join("..", "..", "tools")
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	made, have := files(t, filepath.Join(out, "gen")), files(t, filepath.Join("..", "..", "gen"))
	for name, text := range made {
		if have[name] != text {
			t.Errorf("gen/%s is not what the protos give now: make generate", name)
		}
	}
	for name := range have {
		if _, ok := made[name]; !ok && !strings.HasPrefix(name, "envoy/") { // test/architecture holds those
			t.Errorf("gen/%s comes of no proto: remove it", name)
		}
	}
}

// files reads what is below a folder.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
