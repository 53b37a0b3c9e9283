package envoytypes

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the descriptors
	"fmt"
	"io"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/runtime/protoimpl"
	"google.golang.org/protobuf/types/dynamicpb"
)

// descriptors is an encoded google.protobuf.FileDescriptorSet, compressed.
//
//go:embed descriptors.binpb.gz
var descriptors []byte

// Register adds the types without linked code to protobuf's global registries. A program calls
// it at its start, before other goroutines: the code of a type cannot be linked after it.
var Register = sync.OnceFunc(func() {
	for _, file := range files() {
		if _, err := protoregistry.GlobalFiles.FindFileByPath(file.path); err == nil {
			continue // linked
		}
		// The builder of generated code reads most of a descriptor only when it is needed.
		built := protoimpl.DescBuilder{GoPackagePath: "hdsd/internal/envoytypes", RawDescriptor: file.descriptor}.Build()
		register(built.File.Messages())
	}
})

func register(messages protoreflect.MessageDescriptors) {
	for i := range messages.Len() {
		message := messages.Get(i)
		if message.IsMapEntry() {
			continue
		}
		if err := protoregistry.GlobalTypes.RegisterMessage(dynamicpb.NewMessageType(message)); err != nil {
			panic(fmt.Sprintf("envoytypes: %v", err)) // two files of Envoy have the same message
		}
		register(message.Messages())
	}
}

type file struct {
	path       string
	descriptor []byte // an encoded google.protobuf.FileDescriptorProto
}

// files returns the files of the set.
func files() []file {
	var list []file
	for set := decompress(descriptors); len(set) > 0; { // tools/envoytypes wrote whole fields; each file begins with its path
		_, _, tag := protowire.ConsumeTag(set)
		descriptor, size := protowire.ConsumeBytes(set[tag:])
		set = set[tag+size:]
		_, _, tag = protowire.ConsumeTag(descriptor)
		path, _ := protowire.ConsumeString(descriptor[tag:])
		list = append(list, file{path, descriptor})
	}
	return list
}

func decompress(packed []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		var content []byte
		if content, err = io.ReadAll(r); err == nil {
			return content
		}
	}
	panic(fmt.Sprintf("envoytypes: %v", err)) // tools/envoytypes has written it
}
