package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/rest"
)

// parameters are the possible parameters of a URL, by name.
type parameters map[string]protoreflect.FieldDescriptor

// routes returns the parameters of each method of each path of hdsd.v1.
var routes = sync.OnceValue(func() map[string]map[string]parameters {
	byPath := map[string]map[string]parameters{}
	protoregistry.GlobalFiles.RangeFilesByPackage(hdsdv1.File_hdsd_v1_query_proto.Package(), func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				addRoute(byPath, methods.Get(j))
			}
		}
		return true
	})
	return byPath
})

func addRoute(byPath map[string]map[string]parameters, m protoreflect.MethodDescriptor) {
	rule, _ := proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
	if rule == nil {
		return // over gRPC only
	}
	verb, path := http.MethodGet, rule.GetGet()
	switch {
	case rule.GetPost() != "":
		verb, path = http.MethodPost, rule.GetPost()
	case rule.GetDelete() != "":
		verb, path = http.MethodDelete, rule.GetDelete()
	}
	allowed := parameters{}
	for i := range m.Input().Fields().Len() {
		if field := m.Input().Fields().Get(i); rule.GetBody() == "" {
			allowed[field.JSONName()], allowed[string(field.Name())] = field, field
		}
	}
	if byPath[path] == nil {
		byPath[path] = map[string]parameters{}
	}
	byPath[path][verb] = allowed
}

// checkParameters drops empty parameters and refuses unknown ones. The gateway would
// ignore them, so a misspelt filter would return everything.
func checkParameters(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		methods, ok := routes()[r.URL.Path]
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		allowed, ok := methods[r.Method]
		if !ok {
			rest.WriteError(w, rest.MethodError(w, r, slices.Sorted(maps.Keys(methods))...))
			return
		}
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err == nil {
			err = allowed.check(query, r.URL.Path)
		}
		if err != nil {
			rest.WriteError(w, status.Errorf(codes.InvalidArgument, "query: %v", err))
			return
		}
		cleaned := r.Clone(r.Context())
		cleaned.URL.RawQuery = query.Encode()
		next.ServeHTTP(w, cleaned)
	})
}

// check names the wrong parameter, and drops empty ones.
func (p parameters) check(query url.Values, path string) error {
	firstName := map[protoreflect.FieldDescriptor]string{}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		field, ok := p[name]
		switch values := query[name]; {
		case !ok:
			return fmt.Errorf("unknown parameter %q: %s takes %s", name, path, p)
		case len(values) > 1:
			return fmt.Errorf("parameter %s is given %d times", name, len(values))
		case values[0] == "":
			query.Del(name)
			continue
		case firstName[field] != "":
			return fmt.Errorf("parameter %s is given as %s, too", name, firstName[field])
		}
		firstName[field] = name
		if err := checkValue(field, query.Get(name)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// String lists the names as in JSON.
func (p parameters) String() string {
	var names []string
	for name, field := range p {
		if name == field.JSONName() {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// checkValue says how to fix a value that the gateway would misread or reject with an obscure
// error.
func checkValue(field protoreflect.FieldDescriptor, value string) error {
	switch field.Kind() {
	case protoreflect.BoolKind:
		if _, err := strconv.ParseBool(value); err != nil {
			return fmt.Errorf("%q is neither true nor false", value)
		}
	case protoreflect.Int32Kind:
		if _, err := strconv.ParseInt(value, 10, 32); err != nil {
			return fmt.Errorf("%q is not a number, or too large", value)
		}
	case protoreflect.EnumKind:
		return checkEnum(field.Enum().Values(), value)
	case protoreflect.MessageKind:
		if _, err := time.Parse(time.RFC3339Nano, value); err != nil {
			return fmt.Errorf("%q is not a time in RFC 3339, such as 2026-01-02T15:04:05Z (a + before hours is %%2B in a URL)", value)
		}
	default:
		if !utf8.ValidString(value) {
			return fmt.Errorf("%q is not UTF-8", value)
		}
	}
	return nil
}

func checkEnum(values protoreflect.EnumValueDescriptors, value string) error {
	if values.ByName(protoreflect.Name(value)) != nil {
		return nil
	}
	var names []string
	for i := range values.Len() {
		if value == strconv.Itoa(int(values.Get(i).Number())) {
			return nil
		}
		names = append(names, string(values.Get(i).Name()))
	}
	return fmt.Errorf("%q is not one of %s", value, strings.Join(names, ", "))
}
