package xds

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/internal/envoyrules"
)

// keepHead keeps only the strings and numbers of a response, for a NACK; no lists.
func keepHead(of protoreflect.MessageDescriptor, data []byte) (kept []byte) {
	for len(data) > 0 {
		number, _, n := protowire.ConsumeField(data)
		if n < 0 {
			return kept
		}
		if field := of.Fields().ByNumber(number); field != nil && !field.IsList() && !field.IsMap() && field.Message() == nil {
			kept = append(kept, data[:n]...)
		}
		data = data[n:]
	}
	return kept
}

// weighJSON counts JSON text in the same way: each innermost value is a message, and so
// is each comma. The outer two levels count as elements.
func weighJSON(text []byte) envoyrules.Weight {
	w := envoyrules.Weight{Bytes: len(text)}
	depth, quoted := 0, false
	for i := 0; i < len(text) && w.Elements <= envoyrules.MaxElements; i++ {
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
