package dynamic

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

var name = (*anypb.Any)(nil).ProtoReflect().Descriptor().FullName()

// Any returns m as an Any, and whether it is one. Store applies changes of the result.
func Any(m protoreflect.Message) (*anypb.Any, bool) {
	if a, ok := m.Interface().(*anypb.Any); ok || m.Descriptor().FullName() != name {
		return a, ok
	}
	a := &anypb.Any{}
	proto.Merge(a, m.Interface())
	return a, true
}

// Store replaces the content of m, for which Any returned a.
func Store(m protoreflect.Message, a *anypb.Any) {
	if m.Interface() != proto.Message(a) {
		proto.Reset(m.Interface())
		proto.Merge(m.Interface(), a)
	}
}
