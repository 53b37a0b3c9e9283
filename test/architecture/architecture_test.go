package architecture

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// Longest file, in lines.
const (
	maxLines     = 500
	maxTestLines = 800
)

// mayImport is the import table: of each package, the packages of this module
// that its code (tests apart) may import. What is not listed may not exist.
var mayImport = map[string][]string{
	"health":              {},
	"envoy":               {"envoy/fields", "health", "internal/printable"},
	"internal/wire":       {"envoy/fields"},
	"peer":                {},
	"internal/reason":     {},
	"internal/redact":     {"internal/dynamic"},
	"peer/access":         {"gen/hdsd/config/v1", "peer", "internal/reason", "source"},
	"peer/access/guard":   {"peer/access", "gen/hdsd/config/v1", "peer", "internal/reason", "internal/rest"},
	"internal/gate":       {},
	"internal/heap":       {},
	"internal/packed":     {},
	"internal/rest":       {"peer", "peer/limit", "internal/printable", "internal/reason"},
	"peer/limit/inflight": {"peer", "peer/limit"},
	"peer/limit":          {"internal/heap", "internal/reason"},
	"internal/origin":     {"internal/rest"},
	"peer/certs":          {"gen/hdsd/config/v1", "internal/yamlpb"},
	"config":              {"peer/access", "peer/certs", "internal/dynamic", "internal/yamlpb", "gen/hdsd/config/v1", "source/xds"},
	"internal/table":      {"internal/printable"},
	"internal/printable":  {},
	"internal/duration":   {},
	"internal/suggest":    {},
	"envoy/fields":        {},
	"internal/envoytypes": {},
	"internal/dynamic":    {},
	"internal/yamlpb":     {"internal/duration", "envoy", "internal/suggest"},
	"source":              {"envoy"},
	"source/file":         {"internal/yamlpb", "peer/limit", "source", "envoy/rules", "envoy"},
	"envoy/rules":         {"internal/yamlpb", "envoy/fields"},
	"source/hold":         {"envoy", "source"},
	"source/names":        {"source"},
	"source/sample":       {"source"},
	"source/xds":          {"internal/heap", "internal/yamlpb", "peer/limit", "source", "envoy/rules", "envoy/fields", "envoy"},

	"assign":                     {"health", "assign/internal/quota", "assign/internal/rendezvous", "assign/internal/trie", "assign/internal/zone"},
	"assign/internal/quota":      {"health"},
	"assign/internal/rendezvous": {},
	"assign/internal/trie":       {"health"},
	"assign/internal/zone":       {"health", "assign/internal/rendezvous"},

	"simulate":              {"assign", "health"},
	"simulate/scenario":     {"config", "catalog", "gen/hdsd/config/v1", "health", "simulate", "source", "source/file", "source/names"},
	"validate":              {"internal/dynamic", "config", "catalog", "catalog/targets", "gen/hdsd/config/v1", "envoy/specifier", "health", "envoy", "internal/suggest", "source", "source/file", "source/names", "source/xds", "publish"},
	"aggregate":             {"internal/heap", "health"},
	"hds":                   {"peer/access", "health", "envoy/specifier", "peer", "internal/gate", "internal/rest", "peer/limit", "envoy", "internal/wire", "envoy/fields"},
	"envoy/specifier":       {"health", "envoy/fields", "envoy"},
	"store":                 {"gen/hdsd/store/v1", "health", "internal/packed", "log", "store/boltfile", "store/timeline"},
	"store/boltfile":        {},
	"store/timeline":        {},
	"eds/poll":              {},
	"eds":                   {"peer/access", "eds/poll", "health", "internal/gate", "internal/rest", "envoy", "envoy/fields", "peer", "peer/limit", "publish"},
	"eds/files":             {"envoy/fields"},
	"publish":               {"envoy", "envoy/fields", "health"},
	"relay":                 {"internal/heap", "peer/access", "health", "peer", "envoy", "envoy/rules", "internal/gate", "peer/limit/inflight", "peer/limit", "internal/wire", "envoy/fields", "relay/message", "source", "source/xds", "publish"},
	"relay/message":         {"envoy/fields"},
	"internal/demo":         {"internal/demo/envoy", "gen/hdsd/v1", "health", "envoy", "internal/table"},
	"internal/demo/envoy":   {"bootstrap", "health"},
	"incident":              {"health"},
	"api":                   {"peer/access", "gen/hdsd/v1", "health", "incident", "peer", "internal/rest", "envoy", "internal/reason", "internal/redact", "peer/limit", "internal/gate", "internal/wire"},
	"csds":                  {"internal/gate", "internal/redact", "internal/rest", "envoy/fields"},
	"bootstrap":             {"health"},
	"check":                 {"health", "envoy"},
	"catalog":               {"aggregate", "assign", "config", "gen/hdsd/config/v1", "envoy/specifier", "health", "envoy", "envoy/rules", "source", "publish"},
	"log":                   {"health"},
	"log/batch":             {"health", "internal/packed", "log"},
	"log/etcd":              {},
	"log/sample":            {"health", "log"},
	"ruling":                {"internal/heap", "aggregate", "catalog", "gen/hdsd/config/v1", "health", "log", "publish"},
	"fleet":                 {"assign", "health"},
	"machine":               {"aggregate", "assign", "catalog", "fleet", "fleet/probation", "rollout", "rollout/canary", "ruling", "catalog/targets", "envoy/specifier", "health", "log", "publish"},
	"replica":               {"catalog", "envoy/specifier", "health", "log", "log/batch", "machine", "publish", "replica/clusters"},
	"replica/clusters":      {"catalog", "envoy", "health", "source"},
	"replica/engine":        {"log/etcd", "replica"},
	"replica/maintenance":   {"config", "gen/hdsd/config/v1", "gen/hdsd/replica/v1", "log/etcd", "peer/certs", "replica/link", "store"},
	"replica/link":          {"envoy/fields", "envoy/specifier", "gen/hdsd/replica/v1", "health", "log", "machine", "replica", "ruling", "envoy/rules", "replica/clusters", "source"},
	"machine/recording":     {"rollout/canary", "aggregate", "catalog", "fleet", "envoy", "envoy/specifier", "gen/hdsd/config/v1", "health", "log", "internal/redact", "machine", "publish", "source"},
	"fleet/probation":       {"health"},
	"rollout":               {"catalog", "rollout/canary", "envoy/specifier", "health"},
	"rollout/canary":        {"envoy/specifier", "health"},
	"coordinator/feed":      {"config", "catalog", "gen/hdsd/config/v1", "gen/hdsd/store/v1", "envoy/specifier", "health", "peer/limit", "internal/reason", "internal/yamlpb", "source", "source/file", "source/hold", "source/names", "source/xds"},
	"coordinator/attention": {"health"},
	"catalog/targets":       {"catalog", "health"},
	"coordinator/tally":     {"coordinator/attention", "health", "envoy/rules", "notify"},
	"notify":                {},
	"notify/send":           {"notify"},
	"page":                  {"internal/rest"},
	"coordinator/query":     {"peer/access", "api", "coordinator/attention", "catalog", "coordinator/feed", "csds", "eds", "hds", "health", "gen/hdsd/store/v1", "incident", "source/xds", "store", "publish"},
	"coordinator/union":     {"api", "coordinator/attention", "health", "internal/redact", "peer/access", "peer/limit"},
	"coordinator":           {"peer/access", "peer/access/guard", "aggregate", "api", "assign", "rollout/canary", "config", "catalog", "coordinator/feed", "fleet", "coordinator/query", "coordinator/attention", "coordinator/tally", "coordinator/union", "catalog/targets", "machine", "machine/recording", "notify", "notify/send", "rollout", "ruling", "csds", "eds", "eds/files", "gen/hdsd/config/v1", "gen/hdsd/store/v1", "hds", "envoy/specifier", "health", "gen/hdsd/replica/v1", "log", "log/etcd", "peer", "internal/origin", "internal/rest", "internal/wire", "relay", "replica", "replica/engine", "replica/link", "replica/maintenance", "source", "source/hold", "store", "peer/certs", "peer/limit/inflight", "peer/limit", "internal/printable", "internal/reason", "page", "publish", "replica/clusters"},
	"internal/export":       {"gen/hdsd/v1"},
	"cmd/hdsd":              {"api", "bootstrap", "check", "config", "coordinator", "coordinator/attention", "gen/hdsd/config/v1", "gen/hdsd/v1", "envoy/specifier", "health", "internal/demo", "internal/duration", "internal/envoytypes", "internal/export", "internal/reason", "internal/suggest", "internal/table", "machine", "machine/recording", "replica/maintenance", "simulate", "simulate/scenario", "source", "store", "validate", "internal/printable"},
	"gen/hdsd/config/v1":    {},
	"gen/hdsd/replica/v1":   {},
	"gen/hdsd/store/v1":     {},
	"gen/hdsd/v1":           {},
}

// pure lists the packages that import nothing but the standard library and
// each other.
var pure = []string{"internal/printable", "health", "incident", "assign", "assign/internal/quota", "assign/internal/rendezvous", "assign/internal/trie", "assign/internal/zone", "aggregate", "rollout/canary", "simulate", "store/timeline", "fleet", "fleet/probation", "coordinator/tally", "notify"}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func TestImportsFollowTheTable(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, "hdsd/")
		if strings.HasPrefix(name, "test/") {
			continue // tests may import anything
		}
		allowed, ok := mayImport[name]
		if !ok {
			t.Errorf("package %s is not in the import table", name)
			continue
		}
		for _, unused := range allowed {
			if !slices.Contains(p.Imports, "hdsd/"+unused) {
				t.Errorf("%s does not import %s, which the import table lists", name, unused)
			}
		}
		for _, imported := range p.Imports {
			if inside, ok := strings.CutPrefix(imported, "hdsd/"); ok && !slices.Contains(allowed, inside) {
				t.Errorf("%s imports %s, which the import table does not allow", name, inside)
			}
			if slices.Contains(pure, name) && strings.Contains(strings.Split(imported, "/")[0], ".") {
				t.Errorf("%s is pure but imports %s", name, imported)
			}
		}
	}
}

func TestTheTableHasNoGhosts(t *testing.T) {
	var present []string
	for _, p := range packages(t) {
		present = append(present, strings.TrimPrefix(p.ImportPath, "hdsd/"))
	}
	for name := range mayImport {
		if !slices.Contains(present, name) {
			t.Errorf("the import table lists %s, which does not exist", name)
		}
	}
}

// TestEveryMessageOfEnvoyIsKnown: what tools/envoytypes has written is what it
// would write for the modules of go.mod.
func TestEveryMessageOfEnvoyIsKnown(t *testing.T) {
	folder := t.TempDir()
	command := exec.Command("go", "run", "./envoytypes", "..", folder)
	command.Dir = filepath.Join(root, "tools")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("tools/envoytypes: %v\n%s", err, out)
	}
	for _, name := range []string{"types.go", "descriptors.binpb.gz"} {
		got, err := readPlain(filepath.Join(root, "internal/envoytypes", name))
		want, wrong := readPlain(filepath.Join(folder, name))
		if err := errors.Join(err, wrong); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("internal/envoytypes/%s is not what the modules have: run make generate", name)
		}
	}
}

// readPlain reads a file, and decompresses one with the suffix gz: releases of Go may compress differently.
func readPlain(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil || filepath.Ext(path) != ".gz" {
		return content, err
	}
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	command := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
		var p goPackage
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func TestEachPackageHasOneDocGo(t *testing.T) {
	comments := map[string][]string{} // folder -> files with a package comment
	for _, path := range goFiles(t) {
		folder := filepath.Dir(path)
		if _, ok := comments[folder]; !ok {
			comments[folder] = nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if hasPackageComment(file) {
			comments[folder] = append(comments[folder], filepath.Base(path))
		}
	}
	for folder, files := range comments {
		if !slices.Equal(files, []string{"doc.go"}) {
			t.Errorf("%s: package comments in %v, want one, in doc.go", folder, files)
		}
	}
}

func hasPackageComment(file *ast.File) bool { return file.Doc != nil }

func TestFilesAreShort(t *testing.T) {
	for _, path := range goFiles(t) {
		limit := maxLines
		if strings.HasSuffix(path, "_test.go") {
			limit = maxTestLines
		}
		if lines := countLines(t, path); lines > limit {
			t.Errorf("%s has %d lines; the limit is %d", path, lines, limit)
		}
	}
}

func countLines(t *testing.T, path string) int {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := 0
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		lines++
	}
	return lines
}

// goFiles lists the Go files of this module that people wrote.
func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name == "gen" || name == "tools" || name == "testdata" || strings.HasPrefix(name, ".") && path != root) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".go") {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
