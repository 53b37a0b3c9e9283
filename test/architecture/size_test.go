package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// size is how much a type has, or may have: its fields, and its methods with those that it has by
// what it embeds of this module.
type size struct{ methods, fields int }

// maxSize is the limit of a type: one with more is several rooms in one.
var maxSize = size{40, 20}

// larger lists the types that have more, and may not grow. A state that is one thing may be large if
// its rules are functions over it; the others embed a whole to be a part of it.
var larger = map[string]size{
	"fleet.Fleet":  {125, 20}, // the state of all checkers
	"ruling.Table": {63, 20},  // the state of all endpoints
	"store.Store":  {53, 20},  // one database, with what it answers

	"cmd/hdsd.describer":  {52, 20},
	"config.planeChecks":  {43, 20},
	"config.sourceChecks": {45, 20},
	"ruling.edit":         {93, 20},
	"internal/demo.stage": {45, 20},
	"source/xds.delivery": {44, 20},
	"source/xds.keeper":   {41, 20},
}

func TestTypesAreSmall(t *testing.T) {
	types := readTypes(t)
	for name := range types {
		s := types.size(name, true)
		limit, special := larger[name]
		if !special {
			limit = maxSize
		} else if s.methods <= maxSize.methods && s.fields <= maxSize.fields {
			t.Errorf("%s is no larger than others any more: take it out of the list", name)
		}
		if s.methods > limit.methods || s.fields > limit.fields {
			t.Errorf("%s has %d methods and %d fields with what it embeds; the limits are %d and %d", name, s.methods, s.fields, limit.methods, limit.fields)
		}
	}
}

// linked lists items of data that refer to each other: neither is a part of the other.
var linked = map[string]string{
	"rollout/canary.cluster": "rollout/canary.trial",
	"eds.alias":              "eds.slot",
	"eds.variant":            "eds.slot",
	"peer/limit.share":       "peer/limit.Lease",
}

// pointingBack lists the parts that still point back to their whole. It may not grow.
var pointingBack = map[string]string{
	"eds.requests":    "eds.subscription",
	"relay.catalogue": "relay.Server",
	"relay.outage":    "relay.Server",
}

// TestNoPartPointsBackToItsWhole: a part that does is the whole under another name. Its methods are those
// of the whole, or take what they need as arguments.
func TestNoPartPointsBackToItsWhole(t *testing.T) {
	types := readTypes(t)
	for whole, w := range types {
		for _, part := range w.holds {
			p := types[part]
			if p == nil || part == whole || !slices.Contains(p.holds, whole) || linked[part] == whole || linked[whole] == part {
				continue
			}
			if pointingBack[part] != whole && pointingBack[whole] != part {
				t.Errorf("%s and %s hold each other: one is a part that points back to its whole", whole, part)
			}
		}
	}
	for part, whole := range pointingBack {
		if p, w := types[part], types[whole]; p == nil || w == nil || !slices.Contains(p.holds, whole) || !slices.Contains(w.holds, part) {
			t.Errorf("%s does not point back to %s any more: take it out of the list", part, whole)
		}
	}
}

// typeSize is a type of this module.
type typeSize struct {
	methods  []string
	fields   int      // those that it names
	embedded []string // names of the types, as folder.Name
	holds    []string // names of the types of its fields, as folder.Name
}

// typeTable has the types of this module by name, as folder.Name, tests apart.
type typeTable map[string]*typeSize

// size counts the methods of a type, of which another package sees those that are exported, and its
// fields.
func (all typeTable) size(name string, sees bool) (s size) {
	d := all[name]
	if d == nil {
		return size{}
	}
	for _, method := range d.methods {
		if sees || ast.IsExported(method) {
			s.methods++
		}
	}
	s.fields = d.fields
	for _, part := range d.embedded {
		inner := all.size(part, sees && folderOf(part) == folderOf(name))
		s.methods += inner.methods
	}
	return s
}

// folderOf is the folder of a type's package.
func folderOf(name string) string { return name[:strings.LastIndex(name, ".")] }

func readTypes(t *testing.T) typeTable {
	t.Helper()
	all := typeTable{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			all.read(filepath.ToSlash(folder), importsOf(parsed), declaration)
		}
	}
	return all
}

// importsOf returns the packages of this module that a file imports, by the names that it has for
// them.
func importsOf(file *ast.File) map[string]string {
	folders := map[string]string{}
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		if folder, ours := strings.CutPrefix(imported, "hdsd/"); ours {
			name := path.Base(folder)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			folders[name] = folder
		}
	}
	return folders
}

func (all typeTable) entry(name string) *typeSize {
	if all[name] == nil {
		all[name] = &typeSize{}
	}
	return all[name]
}

// read adds what one declaration gives to its types.
func (all typeTable) read(folder string, imports map[string]string, declaration ast.Decl) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			owner := all.entry(folder + "." + receiver(d.Recv.List[0].Type))
			owner.methods = append(owner.methods, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			named, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			s, ok := named.Type.(*ast.StructType)
			if !ok {
				continue
			}
			owner := all.entry(folder + "." + named.Name.Name)
			for _, field := range s.Fields.List {
				owner.holds = append(owner.holds, embedded(field.Type, folder, imports))
				if owner.fields += len(field.Names); len(field.Names) > 0 {
					continue
				}
				owner.fields++
				if name := embedded(field.Type, folder, imports); name != "" {
					owner.embedded = append(owner.embedded, name)
				}
			}
		}
	}
}

// embedded is the name of an embedded type of this module, as folder.Name; empty for others.
func embedded(e ast.Expr, folder string, imports map[string]string) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return embedded(e.X, folder, imports)
	case *ast.Ident:
		return folder + "." + e.Name
	case *ast.SelectorExpr:
		if base, ok := e.X.(*ast.Ident); ok && imports[base.Name] != "" {
			return imports[base.Name] + "." + e.Sel.Name
		}
	}
	return ""
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return fmt.Sprintf("%T", e)
}
