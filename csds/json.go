package csds

import (
	"errors"
	"io"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
)

// writeResponse writes a response as proto3 JSON, client by client, because the text is
// several times as large as the message.
func writeResponse(w io.Writer, r *statusv3.ClientStatusResponse) {
	before := `{"config":[`
	for _, c := range r.GetConfig() {
		text := encode(c)
		if _, err := io.WriteString(w, before); err != nil {
			return // the client has gone
		}
		if _, err := w.Write(text); err != nil {
			return
		}
		before = ","
	}
	end := "]}\n"
	if len(r.GetConfig()) == 0 {
		end = before + end
	}
	_, _ = io.WriteString(w, end)
}

var format = protojson.MarshalOptions{Resolver: resolver{}}

// encode returns one client as JSON. It omits the parts that JSON cannot express (a NaN in
// metadata, a duration of more than 10,000 years): a configuration, or the node except its id.
func encode(c *statusv3.ClientConfig) []byte {
	text, err := format.Marshal(c)
	if err == nil {
		return text
	}
	c = proto.CloneOf(c)
	drop := func(a **anypb.Any) {
		if _, err := format.Marshal(*a); err != nil {
			*a = nil
		}
	}
	for _, g := range c.GetGenericXdsConfigs() {
		drop(&g.XdsConfig)
		if e := g.GetErrorState(); e != nil {
			drop(&e.FailedConfiguration)
		}
	}
	c.XdsConfig = nil
	if _, err := format.Marshal(c.GetNode()); err != nil {
		c.Node = &corev3.Node{Id: c.GetNode().GetId()}
	}
	if text, err = format.Marshal(c); err != nil {
		return []byte("{}") // every part was tried
	}
	return text
}

// resolver finds the types of messages in Any. It takes an unknown type for a message
// without fields.
type resolver struct{}

func (resolver) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	return protoregistry.GlobalTypes.FindMessageByName(name)
}

func (resolver) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	found, err := protoregistry.GlobalTypes.FindMessageByURL(url)
	if errors.Is(err, protoregistry.NotFound) && strings.Contains(url, "/") {
		return unknown, nil
	}
	return found, err
}

func (resolver) FindExtensionByName(name protoreflect.FullName) (protoreflect.ExtensionType, error) {
	return protoregistry.GlobalTypes.FindExtensionByName(name)
}

func (resolver) FindExtensionByNumber(name protoreflect.FullName, number protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
	return protoregistry.GlobalTypes.FindExtensionByNumber(name, number)
}

// unknown is the type of a message without fields.
var unknown = func() protoreflect.MessageType {
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("csds_unknown.proto"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Unknown")}},
	}, nil)
	if err != nil {
		panic(err) // the descriptor above is wrong
	}
	return dynamicpb.NewMessageType(file.Messages().Get(0))
}()
