package specifier

import (
	"maps"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// treatments lists the allowed fields: how to treat each field of each message in a
// specifier, by the field's full name. A field that Envoy adds later is missing here,
// and so is refused. A test fails until somebody has reviewed it.
var treatments = merge(checkFields, endpointFields, tlsFields)

// messages are rules that concern several fields of a message, or required ones. (init
// sets it, because some rules review messages themselves.)
var messages map[protoreflect.FullName]messageRule

func init() { messages = merge(checkMessages, endpointMessages, tlsMessages) }

func merge[V any](tables ...map[protoreflect.FullName]V) map[protoreflect.FullName]V {
	merged := map[protoreflect.FullName]V{}
	for _, m := range tables {
		maps.Copy(merged, m)
	}
	return merged
}

// qualified adds the message's name to the names of its fields.
func qualified(message protoreflect.FullName, treatments map[protoreflect.Name]treatment) map[protoreflect.FullName]treatment {
	full := make(map[protoreflect.FullName]treatment, len(treatments))
	for name, t := range treatments {
		full[message.Append(name)] = t
	}
	return full
}
