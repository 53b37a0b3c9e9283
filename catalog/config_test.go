package catalog

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// fill sets each field of a message, and one item of each list.
func fill(m protoreflect.Message, depth int) {
	if d, ok := m.Interface().(*durationpb.Duration); ok {
		d.Seconds = 7
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.IsMap() || f.Message() != nil && depth == 0:
		case f.IsList() && f.Message() != nil:
			fill(m.Mutable(f).List().AppendMutable().Message(), depth-1)
		case f.IsList():
			m.Mutable(f).List().Append(value(f))
		case f.Message() != nil:
			fill(m.Mutable(f).Message(), depth-1)
		default:
			m.Set(f, value(f))
		}
	}
}

func value(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("text")
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte("text"))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(7)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(7)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(7)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(7)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(7)
	}
	return protoreflect.ValueOfInt64(7)
}

// TestConfigHasAllThatRulesRead: rules made of it are the same, whatever the configuration says.
func TestConfigHasAllThatRulesRead(t *testing.T) {
	for _, c := range []*configv1.Config{{}, {Verdict: &configv1.Verdict{}, Checkers: &configv1.Checkers{}}, full()} {
		before := NewRules(c)
		after := NewRules(before.Config())
		if before.config = after.config; !proto.Equal(before.Config(), after.Config()) {
			t.Error("the configuration of the rules changes")
		}
		all := cmp.Exporter(func(reflect.Type) bool { return true })
		if diff := cmp.Diff(before, after, protocmp.Transform(), all); diff != "" {
			t.Error(diff)
		}
	}
}

// full returns a configuration of which everything is set.
func full() *configv1.Config {
	c := &configv1.Config{}
	fill(c.ProtoReflect(), 6)
	return c
}
