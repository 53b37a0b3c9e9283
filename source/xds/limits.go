package xds

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/envoy/fields"
	"hdsd/envoy/rules"
)

// keepHead keeps only the strings and numbers of a response, for a NACK; no lists.
func keepHead(descriptor protoreflect.MessageDescriptor, data []byte) (kept []byte) {
	for f := range fields.All(data) {
		if field := descriptor.Fields().ByNumber(f.Number); field != nil && !field.IsList() && !field.IsMap() && field.Message() == nil {
			kept = append(kept, f.Raw...)
		}
	}
	return kept
}

// weighJSON counts JSON text in the same way: each innermost value is a message, and so
// is each comma. The outer two levels count as elements.
func weighJSON(text []byte) rules.Weight {
	w := rules.Weight{Bytes: len(text)}
	depth, quoted := 0, false
	for i := 0; i < len(text) && w.Elements <= rules.MaxElements; i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			w.Messages++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			w.Messages++
			if depth <= 2 {
				w.Elements++
			}
		}
	}
	return w
}
