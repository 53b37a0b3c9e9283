package eds

import (
	"encoding/json"
	"fmt"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/envoy/fields"
)

// rendering is a frame in proto3 JSON, made once for all clients.
type rendering struct {
	frame *frame
	once  sync.Once
	text  []byte // nil if JSON cannot express its content
}

// rendering returns the rendering of a frame that the slot had a moment ago.
func (s *slot) rendering(f *frame) *rendering {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rendered == nil || s.rendered.frame != f {
		s.rendered = &rendering{frame: f}
	}
	return s.rendered
}

// text returns an answer in JSON, in parts.
func (s *fetcher) text(f *fetched) [][]byte {
	identifier, _ := json.Marshal(s.identifier) // a string gives no error
	parts := make([][]byte, 1, 2*len(f.slots)+2)
	parts[0] = fmt.Appendf(nil, `{"versionInfo":%q,"typeUrl":%q,"nonce":%q,"controlPlane":{"identifier":%s},"resources":[`,
		f.version, f.table.typeURL, f.version, identifier)
	size := 0
	for i, slot := range f.slots {
		text := s.render(slot, f.frames[i], f.table)
		if text == nil {
			continue
		}
		if len(parts) > 1 {
			parts = append(parts, comma)
		}
		if f.byLocator(i) {
			parts = append(parts, wrapping(slot, f.frames[i]), text, brace)
		} else {
			parts = append(parts, text)
		}
		size += len(text)
	}
	s.recorder.answered(f.table, size)
	return append(parts, end)
}

var comma, brace, end = []byte(","), []byte("}"), []byte("]}\n")

// wrapping begins a Resource in JSON, the answer to a locator.
func wrapping(slot *slot, f *frame) []byte {
	text, _ := protojson.Marshal(slot.resourceName()) // valid text gives no error
	return fmt.Appendf(nil, `{"@type":%q,"resourceName":%s,"version":%q,"resource":`, fields.WrapperType, text, formatVersion(f.version))
}

// render returns a resource in JSON. It omits a single resource that JSON cannot express (a
// value of an unknown type, a NaN).
func (s *fetcher) render(slot *slot, f *frame, t *table) []byte {
	r := slot.rendering(f)
	r.once.Do(func() {
		text, err := protojson.Marshal(f.message(t.typeURL))
		if err != nil {
			s.recorder.notInJSON(t, slot.name, err)
			return
		}
		r.text = text
	})
	return r.text
}
