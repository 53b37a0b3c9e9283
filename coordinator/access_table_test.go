package coordinator

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/config"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/page"
	"hdsd/peer/access"
)

// TestCallsHaveRoles compares the table of package access with the methods and paths that hdsd serves.
func TestCallsHaveRoles(t *testing.T) {
	c := served(t)
	methods := map[string]bool{}
	for service, info := range c.servers.grpc.GetServiceInfo() {
		for _, method := range info.Methods {
			name := "/" + service + "/" + method.Name
			methods[name] = true
			if _, ok := access.Methods[name]; !ok {
				t.Errorf("%s has no role", name)
			}
		}
	}
	for name := range access.Methods {
		if !methods[name] {
			t.Errorf("%s has a role, and is not served", name)
		}
	}
	paths := map[string]bool{"/v1/openapi.json": true, "/v1/openapi.yaml": true}
	for _, pattern := range c.servers.routes.patterns {
		_, path, ok := strings.Cut(pattern, " ")
		if !ok {
			path = pattern
		}
		if path != "/v1/" { // whose paths follow
			paths[strings.TrimSuffix(path, "{$}")] = true
		}
	}
	for path, rpc := range annotated() {
		paths[path] = true
		for verb, method := range rpc {
			if byPath, byMethod := access.OfRequest(verb, path), access.OfMethod(method); byPath != byMethod {
				t.Errorf("%s %s needs %+v, but %s %+v", verb, path, byPath, method, byMethod)
			}
		}
	}
	for path := range paths {
		if _, ok := access.Paths[path]; !ok {
			t.Errorf("%s has no role", path)
		}
	}
	for path := range access.Paths {
		if !paths[path] {
			t.Errorf("%s has a role, and is not served", path)
		}
	}
	if need := access.OfMethod("/x/Y"); need.Role != access.Admin || need.Open {
		t.Errorf("a method that nobody knows needs %+v", need)
	}
	if need := access.OfRequest("GET", "/debug/pprof/"); need.Role != access.Admin || need.Open {
		t.Errorf("a path that nobody knows needs %+v", need)
	}
}

// TestDocumentHasRoles compares the OpenAPI document with the roles of package access, and with the errors
// for callers without them.
func TestDocumentHasRoles(t *testing.T) {
	var document struct {
		Security []map[string][]string
		Paths    map[string]map[string]struct {
			Roles     []string `json:"x-roles"`
			Security  *[]map[string][]string
			Responses map[string]any
		}
	}
	if err := json.Unmarshal(hdsdv1.OpenAPIJSON, &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Security) != 2 {
		t.Errorf("security: %v: want a token, or nothing beside a certificate", document.Security)
	}
	for path, operations := range document.Paths {
		for verb, o := range operations {
			need, want := access.OfRequest(strings.ToUpper(verb), path), []string{}
			if !need.Open {
				want = append(want, need.Role.String())
			}
			if need.Operators {
				want = append(want, access.Operator.String())
			}
			if need.Whole {
				want = append(want, "ALL")
			}
			if !slices.Equal(o.Roles, want) {
				t.Errorf("%s %s: x-roles %v, want %v", verb, path, o.Roles, want)
			}
			if free := o.Security != nil && len(*o.Security) == 0; free != need.Open {
				t.Errorf("%s %s: security %v", verb, path, o.Security)
			}
			for _, code := range []string{"401", "403"} {
				if told := o.Responses[code] != nil; told == need.Open {
					t.Errorf("%s %s: has %s: %t", verb, path, code, told)
				}
			}
		}
	}
	for path := range access.Paths {
		if document.Paths[path] == nil && !slices.Contains(page.Paths(), path) {
			t.Errorf("the document lacks %s", path)
		}
	}
}

// served is a coordinator that has registered everything.
func served(t *testing.T) *Coordinator {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"clusters.yaml": "resources: []\n",
		"hdsd.yaml": "grpc: {address: '127.0.0.1:0'}\nhttp: {address: '127.0.0.1:0'}\n" +
			"sources: [{name: a, config_source: {path_config_source: {path: clusters.yaml}}}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	from, problems := config.Load(filepath.Join(dir, "hdsd.yaml"))
	if from == nil {
		t.Fatal(problems)
	}
	c, err := New(t.Context(), from, Options{Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// annotated gives the gRPC method of each REST path and verb of hdsd.v1.
func annotated() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, file := range []protoreflect.FileDescriptor{hdsdv1.File_hdsd_v1_query_proto, hdsdv1.File_hdsd_v1_control_proto} {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				rule, ok := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
				if !ok || rule == nil {
					continue
				}
				for verb, path := range map[string]string{"GET": rule.GetGet(), "POST": rule.GetPost(), "DELETE": rule.GetDelete()} {
					if path == "" {
						continue
					}
					if all[path] == nil {
						all[path] = map[string]string{}
					}
					all[path][verb] = "/" + string(service.FullName()) + "/" + string(method.Name())
				}
			}
		}
	}
	return all
}
