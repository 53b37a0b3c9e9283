package yamlpb

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/internal/suggest"
)

// describe names the kind of a value.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!null":
		return "null"
	case "!!int", "!!float":
		return "the number " + clip(n.Value)
	case "!!bool":
		return n.Value
	case "!!str", "!!timestamp", "!!binary":
		if _, err := strconv.ParseFloat(n.Value, 64); err == nil && n.Style == 0 { // a number as it is written; Envoy reads a text
			return "the number " + clip(n.Value)
		}
		return fmt.Sprintf("the text %q", clip(n.Value))
	default:
		return "a value tagged " + clip(n.Tag)
	}
}

// clip shortens text, so that messages stay readable.
func clip(text string) string {
	if len(text) <= 60 {
		return text
	}
	return strings.ToValidUTF8(text[:60], "") + "…"
}

// kindName names the kind of value that a field takes.
func kindName(field protoreflect.FieldDescriptor) string {
	switch field.Kind() {
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.StringKind:
		return "a text"
	case protoreflect.BytesKind:
		return "bytes in base64"
	case protoreflect.EnumKind:
		return "one of " + enumNames(field.Enum().Values())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return "a number"
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return "a whole number, not negative"
	default:
		return "a whole number"
	}
}

func enumNames(values protoreflect.EnumValueDescriptors) string {
	const maxNames = 12
	names := make([]string, 0, maxNames+1)
	for i := range values.Len() {
		if i == maxNames {
			names = append(names, "…")
			break
		}
		names = append(names, string(values.Get(i).Name()))
	}
	return strings.Join(names, ", ")
}

func suggestEnum(word string, values protoreflect.EnumValueDescriptors) string {
	names := make([]string, values.Len())
	for i := range names {
		names[i] = string(values.Get(i).Name())
	}
	return suggest.DidYouMean(word, names)
}

// suggestField suggests the meant field, or the fields of that kind.
func suggestField(word string, fields protoreflect.FieldDescriptors) string {
	names := make([]string, fields.Len())
	var kin []string
	_, kind, _ := strings.Cut(word, "_")
	for i := range names {
		names[i] = fields.Get(i).TextName()
		if _, rest, _ := strings.Cut(names[i], "_"); kind != "" && rest == kind {
			kin = append(kin, names[i])
		}
	}
	if meant := suggest.DidYouMean(word, names); meant != "" || len(kin) == 0 {
		return meant
	}
	return ": it has " + strings.Join(kin, ", ")
}
