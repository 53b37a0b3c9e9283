package envoytypes

import (
	"regexp"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// TestEveryMessage: each file describes the same as the code that is linked, and each message of
// the others can be made, with all that is in it.
func TestEveryMessage(t *testing.T) {
	Register()
	linked, dynamic := 0, 0
	for _, f := range files() {
		want := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(f.descriptor, want); err != nil {
			t.Fatalf("%s: %v", f.path, err)
		}
		file, err := protoregistry.GlobalFiles.FindFileByPath(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := protodesc.ToFileDescriptorProto(file); !proto.Equal(got, want) {
			t.Errorf("%s is not as its file says", f.path)
		}
		for i := range file.Imports().Len() {
			if file.Imports().Get(i).IsPlaceholder() {
				t.Errorf("%s imports %s, which is missing", f.path, file.Imports().Get(i).Path())
			}
		}
		each(file.Messages(), func(m protoreflect.MessageDescriptor) {
			kind, err := protoregistry.GlobalTypes.FindMessageByName(m.FullName())
			if err != nil {
				t.Fatalf("%s: %v", m.FullName(), err)
			}
			if _, ok := kind.New().Interface().(*dynamicpb.Message); ok {
				dynamic++
			} else {
				linked++
			}
			for i := range m.Fields().Len() {
				if inner := m.Fields().Get(i).Message(); inner != nil && inner.IsPlaceholder() {
					t.Errorf("%s has an unknown type", m.Fields().Get(i).FullName())
				}
			}
		})
	}
	if linked == 0 || dynamic == 0 {
		t.Errorf("%d messages are linked, %d are not: want some of both", linked, dynamic)
	}
}

func each(messages protoreflect.MessageDescriptors, do func(protoreflect.MessageDescriptor)) {
	for i := range messages.Len() {
		if m := messages.Get(i); !m.IsMapEntry() {
			do(m)
			each(m.Messages(), do)
		}
	}
}

var builds = regexp.MustCompile(`\.extensions\.(transport_sockets|clusters|upstreams)\.|\.extensions\.filters\..*ProtocolOptions$`)

// TestRulesAreLinked: hdsd checks the rules of what Envoy reads to build a cluster, so their
// messages have code.
func TestRulesAreLinked(t *testing.T) {
	Register()
	protoregistry.GlobalTypes.RangeMessages(func(kind protoreflect.MessageType) bool {
		name := string(kind.Descriptor().FullName())
		if _, checked := kind.New().Interface().(interface{ ValidateAll() error }); !checked && builds.MatchString(name) {
			t.Errorf("%s has no rules", name)
		}
		return true
	})
}
