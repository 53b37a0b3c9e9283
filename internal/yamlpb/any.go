package yamlpb

import (
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
)

const typeField = "@type"

// decodeAny decodes a mapping with @type into the message it names.
func (d *decoder) decodeAny(n *yaml.Node, pos *path, m *anypb.Any) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, pos, `needs a mapping with "@type", not %s`, describe(n))
		return
	}
	if len(n.Content) == 0 {
		return
	}
	url, ok := d.typeURL(n, pos)
	if !ok {
		return
	}
	found, err := protoregistry.GlobalTypes.FindMessageByURL(url)
	if err != nil {
		d.problem(n, pos, "hdsd does not know the type %q, so it cannot encode it: check its spelling; for an extension of your own, "+
			"put this resource into a .pb file or have a management server send it: what is encoded passes through as it is", clip(url))
		return
	}
	before := len(d.problems)
	inner := found.New()
	d.inAny++
	d.anyContent(n, pos, inner)
	d.inAny--
	if len(d.problems) > before || d.doc.budget < 0 {
		return
	}
	m.TypeUrl = url
	if m.Value, err = (proto.MarshalOptions{Deterministic: true}).Marshal(inner.Interface()); err != nil {
		d.problem(n, pos, "cannot be encoded: %s", err)
	}
}

func (d *decoder) typeURL(n *yaml.Node, pos *path) (string, bool) {
	var found *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if resolve(n.Content[i]).Value != typeField {
			continue
		}
		if found != nil {
			d.problem(n.Content[i], pos.field(typeField), "is given a second time (first on line %d)", found.Line)
			return "", false
		}
		found = resolve(n.Content[i+1])
	}
	switch {
	case found == nil:
		d.problem(n, pos, `needs "@type", as "@type": type.googleapis.com/envoy.…`)
	case found.Kind != yaml.ScalarNode || found.Tag != "!!str":
		d.problem(found, pos.field(typeField), "needs a text, not %s", describe(found))
	case !strings.Contains(found.Value, "/"):
		d.problem(found, pos.field(typeField), "needs a type URL, not %s: write type.googleapis.com/%s", describe(found), clip(found.Value))
	default:
		if _, ok := d.enter(found, pos.field(typeField)); !ok {
			return "", false
		}
		d.leave()
		return found.Value, true
	}
	return "", false
}

// anyContent decodes the fields beside @type. A well-known type has no fields in JSON:
// its value is in "value".
func (d *decoder) anyContent(n *yaml.Node, pos *path, inner protoreflect.Message) {
	if !hasOwnForm(inner.Descriptor()) {
		d.fields(n, pos, inner, []string{typeField})
		return
	}
	found := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch key := resolve(n.Content[i]); {
		case key.Value == typeField:
		case key.Value == "value" && !found:
			found = true
			d.message(n.Content[i+1], pos.field("value"), inner)
		default:
			d.problem(key, pos.unknown(key.Value), "is not possible here: a %s has only \"@type\" and one \"value\"", inner.Descriptor().FullName())
		}
	}
	if !found && inner.Descriptor().Name() != "Empty" && !d.doc.envoy {
		d.problem(n, pos, "needs a \"value\" beside \"@type\"")
	}
}

func hasOwnForm(m protoreflect.MessageDescriptor) bool {
	name := m.FullName()
	return name.Parent() == "google.protobuf" && wellKnownNames[name.Name()]
}

var wellKnownNames = map[protoreflect.Name]bool{
	"Any": true, "Empty": true, "Duration": true, "Timestamp": true, "FieldMask": true, "Struct": true, "ListValue": true, "Value": true,
	"BoolValue": true, "StringValue": true, "BytesValue": true, "FloatValue": true, "DoubleValue": true,
	"Int32Value": true, "Int64Value": true, "UInt32Value": true, "UInt64Value": true,
}
