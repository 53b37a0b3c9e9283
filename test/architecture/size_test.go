package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// size is how much a type has, or may have.
type size struct{ methods, fields int }

// maxSize is the limit of a type: one with more is several rooms in one. The core only
// joins rooms, so its own limit is lower.
var (
	maxSize  = size{40, 20}
	maxSizes = map[string]size{"coordinator.core": {30, 15}}
)

func TestTypesAreSmall(t *testing.T) {
	sizes := typeSizes(t)
	for name, s := range sizes {
		limit, special := maxSizes[name]
		if !special {
			limit = maxSize
		}
		if s.methods > limit.methods || s.fields > limit.fields {
			t.Errorf("%s has %d methods and %d fields; the limits are %d and %d", name, s.methods, s.fields, limit.methods, limit.fields)
		}
	}
}

// typeSizes counts the methods and the fields of each type of this module,
// tests apart.
func typeSizes(t *testing.T) map[string]size {
	t.Helper()
	sizes := map[string]size{}
	for _, path := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			count(sizes, filepath.ToSlash(folder), declaration)
		}
	}
	return sizes
}

// count adds what one declaration gives to its types.
func count(sizes map[string]size, folder string, declaration ast.Decl) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			name := folder + "." + receiver(d.Recv.List[0].Type)
			sizes[name] = size{sizes[name].methods + 1, sizes[name].fields}
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			named, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			if s, ok := named.Type.(*ast.StructType); ok {
				name := folder + "." + named.Name.Name
				sizes[name] = size{sizes[name].methods, fieldsOf(s)}
			}
		}
	}
}

// fieldsOf counts the names of a struct's fields, an embedded one as one.
func fieldsOf(s *ast.StructType) int {
	fields := 0
	for _, field := range s.Fields.List {
		fields += max(1, len(field.Names))
	}
	return fields
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
