package yamlpb

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"hdsd/internal/duration"
)

// wellKnown decodes messages with a JSON form of their own. It returns false for
// others. The caller has entered n.
func (d *decoder) wellKnown(n *yaml.Node, pos *path, m protoreflect.Message) bool {
	if d.doc.envoy && n.Kind == yaml.MappingNode && takesFields(m.Descriptor()) {
		return false
	}
	switch message := m.Interface().(type) {
	case *dynamicpb.Message:
		return d.dynamic(n, pos, message)
	case *anypb.Any:
		d.decodeAny(n, pos, message)
	case *durationpb.Duration:
		d.duration(n, pos, message)
	case *timestamppb.Timestamp:
		d.viaJSON(n, pos, message, `a time as "2006-01-02T15:04:05Z"`)
	case *fieldmaskpb.FieldMask:
		d.viaJSON(n, pos, message, `field names in lowerCamelCase, separated by commas`)
	case *structpb.Struct:
		message.Fields = d.structFields(n, pos)
	case *structpb.ListValue:
		message.Values = d.listValues(n, pos)
	case *structpb.Value:
		d.value(n, pos, message)
	default:
		return d.wrapper(n, pos, m)
	}
	return true
}

// dynamic decodes a well-known message in a message without Go code, where it has none either.
func (d *decoder) dynamic(n *yaml.Node, pos *path, m *dynamicpb.Message) bool {
	if !hasOwnForm(m.Descriptor()) {
		return false
	}
	linked, err := protoregistry.GlobalTypes.FindMessageByName(m.Descriptor().FullName())
	if err != nil {
		return false
	}
	inner := linked.New()
	if _, ok := inner.Interface().(*dynamicpb.Message); ok || !d.wellKnown(n, pos, inner) {
		return false
	}
	proto.Merge(m, inner.Interface())
	return true
}

// takesFields reports whether Envoy also accepts a message as a mapping of its fields.
func takesFields(m protoreflect.MessageDescriptor) bool {
	switch m.Name() {
	case "Any", "Struct", "Value", "ListValue":
		return false
	default:
		return hasOwnForm(m)
	}
}

func (d *decoder) wrapper(n *yaml.Node, pos *path, m protoreflect.Message) bool {
	name := m.Descriptor().FullName()
	if name.Parent() != "google.protobuf" || !strings.HasSuffix(string(name), "Value") {
		return false
	}
	field := m.Descriptor().Fields().ByName("value")
	if field == nil || m.Descriptor().Fields().Len() != 1 {
		return false
	}
	if value, ok := d.scalar(n, pos, field); ok {
		m.Set(field, value)
	}
	return true
}

var (
	durationForm = regexp.MustCompile(`^(-?)([0-9]{1,12})(?:\.([0-9]{1,9}))?s$`)
	maxSeconds   = int64(315_576_000_000)
)

func (d *decoder) duration(n *yaml.Node, pos *path, m *durationpb.Duration) {
	match := durationForm.FindStringSubmatch(n.Value)
	if match == nil && d.doc.own {
		d.ownDuration(n, pos, m)
		return
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || match == nil {
		d.problem(n, pos, `needs a duration in seconds as "0.5s", not %s%s`, describe(n), durationHint(n))
		return
	}
	seconds, err := strconv.ParseInt(match[2], 10, 64)
	if err != nil || seconds > maxSeconds {
		d.problem(n, pos, "%s is out of range: a duration has at most %d seconds", n.Value, maxSeconds)
		return
	}
	nanos, _ := strconv.ParseInt((match[3] + "000000000")[:9], 10, 32)
	if match[1] == "-" {
		seconds, nanos = -seconds, -nanos
	}
	m.Seconds, m.Nanos = seconds, int32(nanos)
}

// ownDuration decodes a duration in people's form.
func (d *decoder) ownDuration(n *yaml.Node, pos *path, m *durationpb.Duration) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		d.problem(n, pos, `needs a duration as %s, not %s%s`, duration.Forms, describe(n), durationHint(n))
		return
	}
	length, err := duration.Parse(n.Value)
	if err != nil {
		d.problem(n, pos, "%q %s", clip(n.Value), err)
		return
	}
	m.Seconds, m.Nanos = int64(length/time.Second), int32(length%time.Second)
}

// durationHint converts a duration in another common form.
func durationHint(n *yaml.Node) string {
	text := n.Value
	if jsonNumber.MatchString(text) { // quoted or not
		text += "s"
	}
	if len(text) > 30 {
		return ""
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return ""
	}
	digits := strings.TrimRight(fmt.Sprintf("%d.%09d", parsed/time.Second, (parsed%time.Second).Abs()), "0")
	return fmt.Sprintf(": write %ss", strings.TrimSuffix(digits, "."))
}

// viaJSON decodes a message that is a string in JSON.
func (d *decoder) viaJSON(n *yaml.Node, pos *path, m proto.Message, form string) {
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!timestamp") {
		if protojson.Unmarshal([]byte(strconv.Quote(n.Value)), m) == nil {
			return
		}
	}
	d.problem(n, pos, "needs %s, not %s", form, describe(n))
}

func (d *decoder) structFields(n *yaml.Node, pos *path) map[string]*structpb.Value {
	if n.Kind != yaml.MappingNode {
		d.problem(n, pos, "needs a mapping, not %s", describe(n))
		return nil
	}
	fields := make(map[string]*structpb.Value, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		pos := pos.key(clip(key.Value))
		switch _, double := fields[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			d.problem(key, pos, "a key must be a plain text")
		case double:
			d.problem(key, pos, "is given a second time")
		default:
			fields[key.Value] = d.newValue(n.Content[i+1], pos)
		}
	}
	return fields
}

func (d *decoder) listValues(n *yaml.Node, pos *path) []*structpb.Value {
	if n.Kind != yaml.SequenceNode {
		d.problem(n, pos, "needs a list, not %s", describe(n))
		return nil
	}
	values := make([]*structpb.Value, len(n.Content))
	for i, element := range n.Content {
		values[i] = d.newValue(element, pos.element(i))
	}
	return values
}

func (d *decoder) newValue(n *yaml.Node, pos *path) *structpb.Value {
	value := &structpb.Value{}
	if n, ok := d.enter(n, pos); ok {
		d.value(n, pos, value)
		d.leave()
	}
	return value
}

func (d *decoder) value(n *yaml.Node, pos *path, m *structpb.Value) {
	switch n.Kind {
	case yaml.MappingNode:
		m.Kind = &structpb.Value_StructValue{StructValue: &structpb.Struct{Fields: d.structFields(n, pos)}}
		return
	case yaml.SequenceNode:
		m.Kind = &structpb.Value_ListValue{ListValue: &structpb.ListValue{Values: d.listValues(n, pos)}}
		return
	}
	if truth, ok := word(n); ok && d.doc.envoy {
		m.Kind = &structpb.Value_BoolValue{BoolValue: truth}
		return
	}
	switch n.Tag {
	case "!!null":
		m.Kind = &structpb.Value_NullValue{}
	case "!!bool":
		m.Kind = &structpb.Value_BoolValue{BoolValue: strings.EqualFold(n.Value, "true")}
	case "!!int", "!!float":
		number, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || math.IsInf(number, 0) || !jsonNumber.MatchString(n.Value) {
			d.problem(n, pos, "%s is not a number that JSON has: write it in decimal digits, or put it in quotes", describe(n))
		}
		m.Kind = &structpb.Value_NumberValue{NumberValue: number}
	case "!!str", "!!timestamp":
		m.Kind = &structpb.Value_StringValue{StringValue: n.Value}
	default:
		d.problem(n, pos, "cannot be %s", describe(n))
	}
}
