package main

import (
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// message refers to the schema of a message. Those that are answered have all
// their fields but messages and those that are optional.
func (d *document) message(m *protogen.Message, answered bool) *object {
	name := nameOf(m.Desc)
	if begun := d.schemas.child(name); begun.values["type"] == nil {
		d.describe(begun, m, answered)
	}
	return reference("schemas", name)
}

func (d *document) describe(schema *object, m *protogen.Message, answered bool) {
	if text := d.text(m.Comments); text != "" {
		schema.set("description", text)
	}
	schema.set("type", "object")
	var required []any
	for _, field := range m.Fields {
		if answered && !field.Desc.HasPresence() {
			required = append(required, field.Desc.JSONName())
		}
	}
	if required != nil {
		schema.set("required", required)
	}
	properties := schema.child("properties")
	for _, field := range m.Fields {
		value := d.value(field, answered)
		if text := d.text(field.Comments); text != "" {
			value = described(value, text)
		}
		properties.set(field.Desc.JSONName(), value)
	}
}

// described gives a schema a description. Nothing may stand beside a reference.
func described(schema *object, text string) *object {
	if schema.values["$ref"] != nil {
		schema = members("allOf", []any{schema})
	}
	out := members("description", text)
	for _, key := range schema.keys {
		out.set(key, schema.values[key])
	}
	return out
}

// value is the schema of what a field holds.
func (d *document) value(f *protogen.Field, answered bool) *object {
	switch {
	case f.Desc.IsMap():
		return members("type", "object", "additionalProperties", d.single(f.Message.Fields[1], answered))
	case f.Desc.IsList():
		return members("type", "array", "items", d.single(f, answered))
	}
	return d.single(f, answered)
}

func (d *document) single(f *protogen.Field, answered bool) *object {
	switch f.Desc.Kind() {
	case protoreflect.BoolKind:
		return members("type", "boolean")
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return members("type", "integer", "format", "int32")
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return members("type", "integer", "format", "int64", "minimum", 0, "maximum", math.MaxUint32)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return members("type", "string", "format", "uint64", "pattern", "^[0-9]+$")
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return members("type", "string", "format", "int64", "pattern", "^-?[0-9]+$")
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		return members("type", "number", "format", "double")
	case protoreflect.BytesKind:
		return members("type", "string", "format", "byte")
	case protoreflect.EnumKind:
		return d.enum(f.Enum)
	case protoreflect.MessageKind:
		switch f.Message.Desc.FullName() {
		case "google.protobuf.Timestamp":
			return members("type", "string", "format", "date-time")
		case "google.protobuf.Struct": // any object
			return members("type", "object", "additionalProperties", true)
		case "google.protobuf.Duration":
			return members("type", "string", "pattern", `^-?[0-9]+(\.[0-9]{1,9})?s$`)
		}
		return d.message(f.Message, answered)
	}
	return members("type", "string")
}

// enum refers to the schema of an enum: its names.
func (d *document) enum(e *protogen.Enum) *object {
	name := nameOf(e.Desc)
	schema := d.schemas.child(name)
	if schema.values["type"] == nil {
		var names []any
		text := d.text(e.Comments)
		for _, value := range e.Values {
			names = append(names, string(value.Desc.Name()))
			if meaning := d.text(value.Comments); meaning != "" {
				text += "\n- " + string(value.Desc.Name()) + ": " + meaning
			}
		}
		if text != "" {
			schema.set("description", text)
		}
		schema.set("type", "string")
		schema.set("enum", names)
	}
	return reference("schemas", name)
}

// events refers to the schema of server-sent events: one for each member of a
// message's oneof, and the error that a stream may end with.
func (d *document) events(m *protogen.Message) *object {
	name := nameOf(m.Desc)
	var kinds []any
	for _, field := range m.Oneofs[0].Fields {
		kinds = append(kinds, event(string(field.Desc.Name()), d.text(field.Comments), d.message(field.Message, true)))
	}
	kinds = append(kinds, event("error", "Why the stream ends.", reference("schemas", "Error")))
	schema := d.schemas.child(name)
	schema.set("description", d.text(m.Comments)+" One server-sent event: its name, the JSON of its data, and the token to resume behind it.")
	schema.set("oneOf", kinds)
	return reference("schemas", name)
}

func event(name, text string, data *object) *object {
	return members("description", text, "type", "object", "required", []any{"event", "data"}, "properties", members(
		"event", members("type", "string", "enum", []any{name}),
		"id", members("type", "string"),
		"data", data,
	))
}

// text is a comment as one paragraph, with the names that JSON has.
func (d *document) text(c protogen.CommentSet) string {
	return d.renamed.Replace(strings.Join(strings.Fields(string(c.Leading)), " "))
}

// renaming gives the JSON names of a file's fields.
func renaming(file *protogen.File) *strings.Replacer {
	var pairs [][2]string
	for _, m := range file.Messages {
		for _, f := range m.Fields {
			if name := string(f.Desc.Name()); name != f.Desc.JSONName() {
				pairs = append(pairs, [2]string{name, f.Desc.JSONName()})
			}
		}
	}
	// Of names that begin alike, the longest counts.
	slices.SortFunc(pairs, func(a, b [2]string) int { return len(b[0]) - len(a[0]) })
	var flat []string
	for _, pair := range pairs {
		flat = append(flat, pair[0], pair[1])
	}
	return strings.NewReplacer(flat...)
}

// nameOf is the name of a message or enum, with those it is nested in.
func nameOf(d protoreflect.Descriptor) string {
	if parent, ok := d.Parent().(protoreflect.MessageDescriptor); ok {
		return nameOf(parent) + string(d.Name())
	}
	return string(d.Name())
}
