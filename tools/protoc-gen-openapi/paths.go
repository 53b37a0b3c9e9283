package main

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
)

// document is an OpenAPI document that grows. The services come first in it,
// then what the base has.
type document struct {
	root    *object
	tags    []any
	paths   *object
	schemas *object
	renamed *strings.Replacer // of the names in comments
}

func newDocument(base *object) *document {
	return &document{root: base, paths: members(), schemas: base.child("components").child("schemas")}
}

// finish gives the whole document.
func (d *document) finish() (*object, error) {
	others := d.root.child("paths")
	for _, path := range others.keys {
		d.paths.set(path, others.values[path])
	}
	if err := d.secure(); err != nil {
		return nil, err
	}
	d.root.set("tags", append(d.tags, list(d.root.values["tags"])...))
	d.root.set("paths", d.paths)
	return d.root, nil
}

// secure says what each operation needs, and what those are told who lack it. It moves the
// base's x-roles to the operations.
func (d *document) secure() error {
	needs := d.root.child("x-roles")
	d.root.remove("x-roles")
	for _, path := range d.paths.keys {
		for _, verb := range d.paths.child(path).keys {
			operation := d.paths.child(path).child(verb)
			roles, known := needs.child(path).values[verb].([]any)
			if !known {
				return fmt.Errorf("x-roles in the base has no roles of %s %s", verb, path)
			}
			if operation.set("x-roles", append([]any{}, roles...)); len(roles) == 0 {
				operation.set("security", []any{})
				continue
			}
			answers := operation.child("responses")
			if answers.values["401"] == nil {
				answers.set("401", reference("responses", "Unauthorized"))
			}
			answers.set("403", reference("responses", "Forbidden"))
			slices.Sort(answers.keys)
		}
	}
	return nil
}

// add describes the services of a file.
func (d *document) add(file *protogen.File) error {
	d.renamed = renaming(file)
	for _, service := range file.Services {
		d.tags = append(d.tags, members("name", service.GoName, "description", d.text(service.Comments)))
		for _, method := range service.Methods {
			rule, _ := proto.GetExtension(method.Desc.Options(), annotations.E_Http).(*annotations.HttpRule)
			if rule == nil {
				continue
			}
			if err := d.method(method, rule); err != nil {
				return fmt.Errorf("%s: %w", method.Desc.FullName(), err)
			}
		}
	}
	return nil
}

func (d *document) method(m *protogen.Method, rule *annotations.HttpRule) error {
	verb, path := "", ""
	switch pattern := rule.Pattern.(type) {
	case *annotations.HttpRule_Get:
		verb, path = "get", pattern.Get
	case *annotations.HttpRule_Post:
		verb, path = "post", pattern.Post
	case *annotations.HttpRule_Put:
		verb, path = "put", pattern.Put
	case *annotations.HttpRule_Delete:
		verb, path = "delete", pattern.Delete
	}
	if verb == "" || strings.Contains(path, "{") || rule.Body != "" && rule.Body != "*" || len(rule.AdditionalBindings) > 0 {
		return fmt.Errorf("this HTTP annotation is not understood: %v", rule)
	}
	description := d.text(m.Comments)
	operation := members(
		"operationId", m.GoName, "tags", []any{m.Parent.GoName},
		"summary", summary(m.GoName), "description", description,
	)
	if rule.Body == "*" {
		operation.set("requestBody", members("required", true, "content", members("application/json", members("schema", d.message(m.Input, false)))))
	} else if parameters := d.parameters(m); len(parameters) > 0 {
		operation.set("parameters", parameters)
	}
	operation.set("responses", d.responses(m, verb, description))
	d.paths.child(path).set(verb, operation)
	return nil
}

// parameters are the fields of a request that has no body.
func (d *document) parameters(m *protogen.Method) (all []any) {
	for _, field := range m.Input.Fields {
		schema := d.value(field, false)
		if field.Desc.Name() == "page_size" {
			schema = members("type", "integer", "minimum", 0, "maximum", 10_000, "default", 1000)
		}
		all = append(all, members(
			"name", field.Desc.JSONName(), "in", "query", "description", d.text(field.Comments),
			"allowEmptyValue", true, "schema", schema,
		))
	}
	if m.Desc.IsStreamingServer() {
		all = append(all, reference("parameters", "LastEventID"))
	}
	return all
}

// responses are the answer and the errors, which the base describes.
func (d *document) responses(m *protogen.Method, verb, description string) *object {
	kind, schema := "application/json", any(nil)
	if m.Desc.IsStreamingServer() {
		kind, schema = "text/event-stream", d.events(m.Output)
	} else {
		schema = d.message(m.Output, true)
	}
	answers := members("200", members(
		"description", d.text(m.Output.Comments),
		"headers", members("X-Hdsd-Frozen", reference("headers", "Frozen")),
		"content", members(kind, members("schema", schema)),
	))
	for _, e := range []struct {
		status, name string
		possible     bool
	}{
		{"400", "BadRequest", true},
		{"404", "NotFound", strings.Contains(description, "NOT_FOUND")},
		{"405", "MethodNotAllowed", true},
		{"415", "UnsupportedMediaType", verb == "post"},
		{"500", "Internal", true},
		{"503", "Unavailable", true},
	} {
		if e.possible {
			answers.set(e.status, reference("responses", e.name))
		}
	}
	return answers
}

// summary is a method's name in words.
func summary(name string) string {
	var words strings.Builder
	for i, letter := range name {
		if i > 0 && letter >= 'A' && letter <= 'Z' {
			words.WriteByte(' ')
			letter += 'a' - 'A'
		}
		words.WriteRune(letter)
	}
	return words.String()
}

func reference(kind, name string) *object {
	return members("$ref", "#/components/"+kind+"/"+name)
}

func list(value any) []any {
	all, _ := value.([]any)
	return all
}
