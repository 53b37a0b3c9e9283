package architecture

import (
	"bufio"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
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
	"internal/envoyaddr":  {"health", "internal/printable"},
	"internal/wire":       {},
	"internal/caller":     {},
	"internal/reason":     {},
	"internal/redact":     {},
	"access":              {"gen/hdsd/config/v1", "internal/caller", "internal/reason", "source"},
	"access/guard":        {"access", "gen/hdsd/config/v1", "internal/caller", "internal/reason", "internal/rest"},
	"internal/gate":       {},
	"internal/queue":      {},
	"internal/pace":       {},
	"internal/rest":       {"internal/caller", "internal/share", "internal/printable", "internal/reason"},
	"internal/inflight":   {"internal/caller", "internal/share"},
	"internal/share":      {"internal/reason"},
	"internal/origin":     {"internal/rest"},
	"internal/certs":      {"gen/hdsd/config/v1", "internal/yamlpb"},
	"internal/conns":      {},
	"config":              {"access", "internal/certs", "internal/yamlpb", "gen/hdsd/config/v1", "source/xds"},
	"internal/table":      {"internal/printable"},
	"internal/printable":  {},
	"internal/duration":   {},
	"internal/suggest":    {},
	"internal/fields":     {},
	"internal/endpointpb": {"internal/fields"},
	"internal/yamlpb":     {"gen/envoy", "internal/duration", "internal/endpointpb", "internal/suggest"},
	"source":              {"internal/endpointpb"},
	"source/file":         {"internal/yamlpb", "internal/pace", "source", "internal/envoyrules"},
	"internal/envoyrules": {"internal/yamlpb"},
	"source/hold":         {"internal/envoyaddr", "source"},
	"source/names":        {"source"},
	"source/sample":       {"source"},
	"source/xds":          {"internal/yamlpb", "internal/pace", "source", "internal/envoyrules"},

	"assign":                     {"health", "assign/internal/quota", "assign/internal/rendezvous", "assign/internal/trie", "assign/internal/zone"},
	"assign/internal/quota":      {"health"},
	"assign/internal/rendezvous": {},
	"assign/internal/trie":       {"health"},
	"assign/internal/zone":       {"health", "assign/internal/rendezvous"},

	"simulate":                   {"assign", "health"},
	"simulate/scenario":          {"config", "coordinator/catalog", "gen/hdsd/config/v1", "health", "simulate", "source", "source/file", "source/names"},
	"validate":                   {"config", "coordinator/catalog", "coordinator/targets", "eds", "gen/hdsd/config/v1", "hds/specifier", "health", "internal/envoyaddr", "internal/suggest", "source", "source/file", "source/names", "source/xds"},
	"aggregate":                  {"health"},
	"hds":                        {"access", "health", "hds/specifier", "internal/caller", "internal/gate", "internal/rest", "internal/share", "internal/envoyaddr", "internal/wire", "internal/pace"},
	"hds/specifier":              {"health", "internal/fields", "internal/endpointpb", "internal/envoyaddr"},
	"store":                      {"gen/hdsd/store/v1", "health", "store/boltfile", "store/timeline"},
	"store/boltfile":             {},
	"store/timeline":             {},
	"eds/poll":                   {},
	"eds":                        {"access", "eds/poll", "health", "internal/gate", "internal/rest", "internal/endpointpb", "internal/fields", "internal/envoyaddr", "internal/caller", "internal/pace", "internal/share"},
	"eds/files":                  {},
	"relay":                      {"access", "eds", "health", "internal/caller", "internal/envoyaddr", "internal/envoyrules", "internal/gate", "internal/inflight", "internal/pace", "internal/queue", "internal/share", "internal/wire", "internal/fields", "relay/message", "relay/overlay", "source", "source/xds"},
	"relay/message":              {"internal/fields"},
	"relay/overlay":              {"health", "internal/envoyaddr", "internal/fields"},
	"internal/demo":              {"internal/demo/envoy", "internal/demo/upstream", "gen/hdsd/v1", "health", "internal/envoyaddr", "internal/table"},
	"internal/demo/envoy":        {"bootstrap", "health"},
	"internal/demo/upstream":     {},
	"incident":                   {"health"},
	"api":                        {"access", "gen/hdsd/v1", "health", "incident", "internal/caller", "internal/rest", "internal/envoyaddr", "internal/queue", "internal/reason", "internal/redact", "internal/share", "internal/gate", "internal/wire"},
	"csds":                       {"internal/gate", "internal/redact", "internal/rest"},
	"bootstrap":                  {"health"},
	"check":                      {"health", "internal/envoyaddr"},
	"coordinator/catalog":        {"aggregate", "assign", "coordinator/rollout/canary", "config", "eds", "gen/hdsd/config/v1", "hds/specifier", "health", "internal/envoyaddr", "internal/envoyrules", "source"},
	"coordinator/decision":       {"eds", "health", "store"},
	"coordinator/ruling":         {"aggregate", "coordinator/catalog", "coordinator/decision", "eds", "gen/hdsd/config/v1", "health", "store"},
	"coordinator/fleet":          {"assign", "health"},
	"coordinator/probation":      {"health"},
	"coordinator/rollout":        {"coordinator/catalog", "coordinator/rollout/canary", "hds/specifier", "health"},
	"coordinator/rollout/canary": {"health"},
	"coordinator/feed":           {"config", "coordinator/catalog", "gen/hdsd/config/v1", "gen/hdsd/store/v1", "hds/specifier", "health", "internal/pace", "internal/reason", "internal/yamlpb", "source", "source/file", "source/hold", "source/names", "source/xds"},
	"coordinator/attention":      {},
	"coordinator/targets":        {"coordinator/catalog", "health"},
	"coordinator/tally":          {"coordinator/attention", "health", "internal/envoyrules", "notify"},
	"notify":                     {},
	"notify/send":                {"notify"},
	"page":                       {"internal/rest"},
	"coordinator/query":          {"access", "api", "coordinator/attention", "coordinator/catalog", "coordinator/feed", "csds", "eds", "hds", "health", "gen/hdsd/store/v1", "incident", "source/xds", "store"},
	"coordinator":                {"access", "access/guard", "aggregate", "api", "assign", "coordinator/rollout/canary", "config", "coordinator/catalog", "coordinator/decision", "coordinator/feed", "coordinator/fleet", "coordinator/probation", "coordinator/query", "coordinator/attention", "coordinator/tally", "coordinator/targets", "notify", "notify/send", "coordinator/rollout", "coordinator/ruling", "csds", "eds", "eds/files", "gen/hdsd/config/v1", "gen/hdsd/store/v1", "hds", "hds/specifier", "health", "internal/caller", "internal/origin", "internal/rest", "internal/wire", "relay", "source", "source/hold", "store", "internal/certs", "internal/conns", "internal/inflight", "internal/share", "internal/printable", "internal/pace", "internal/reason", "page"},
	"internal/export":            {"gen/hdsd/v1"},
	"cmd/hdsd":                   {"api", "bootstrap", "check", "config", "coordinator", "coordinator/attention", "gen/hdsd/config/v1", "gen/hdsd/v1", "hds/specifier", "health", "internal/demo", "internal/duration", "internal/export", "internal/reason", "internal/suggest", "internal/table", "simulate", "simulate/scenario", "source", "store", "validate", "internal/printable"},
	"gen/envoy":                  {},
	"gen/hdsd/config/v1":         {},
	"gen/hdsd/store/v1":          {},
	"gen/hdsd/v1":                {},
}

// pure lists the packages that import nothing but the standard library and
// each other.
var pure = []string{"internal/printable", "health", "incident", "assign", "assign/internal/quota", "assign/internal/rendezvous", "assign/internal/trie", "assign/internal/zone", "aggregate", "coordinator/rollout/canary", "simulate", "store/timeline", "coordinator/fleet", "coordinator/probation", "coordinator/tally", "notify"}

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

// TestEveryMessageOfEnvoyIsLinked: what tools/envoytypes has written is what it
// would write for the modules of go.mod.
func TestEveryMessageOfEnvoyIsLinked(t *testing.T) {
	command := exec.Command("go", "run", "./envoytypes", "..", "-")
	command.Dir = filepath.Join(root, "tools")
	want, err := command.Output()
	if err != nil {
		t.Fatalf("tools/envoytypes: %v", err)
	}
	got, err := os.ReadFile(filepath.Join(root, "gen", "envoy", "types.go"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("gen/envoy/types.go does not list what the modules have: run make generate")
	}
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
