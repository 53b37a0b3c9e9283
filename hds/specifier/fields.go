package specifier

import (
	"maps"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// fields is the allow-list: what is done with each field of each message that
// a specifier may hold, by the field's full name. A field that Envoy adds
// later is not here and so is refused; a test fails until it was reviewed.
var fields = merge(checkFields, endpointFields, bindFields, tlsFields)

// messages are tests that look at more than one field of a message, or at what
// must be there. (Set by init, since some of the tests review messages
// themselves.)
var messages map[protoreflect.FullName]messageRule

func init() { messages = merge(checkMessages, endpointMessages, bindMessages, tlsMessages) }

func merge[V any](all ...map[protoreflect.FullName]V) map[protoreflect.FullName]V {
	merged := map[protoreflect.FullName]V{}
	for _, m := range all {
		maps.Copy(merged, m)
	}
	return merged
}

// of prefixes the names of a message's fields with the message's name.
func of(message protoreflect.FullName, treatments map[protoreflect.Name]treatment) map[protoreflect.FullName]treatment {
	full := make(map[protoreflect.FullName]treatment, len(treatments))
	for name, t := range treatments {
		full[message.Append(name)] = t
	}
	return full
}
