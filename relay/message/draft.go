package message

import "hdsd/envoy/fields"

// Draft is a response that is not encoded yet. It refers to its resources, and copies none.
type Draft struct {
	each func(part func(wire []byte, resource bool)) error
}

// Each calls part with each part of the encoded response, in order, and tells it whether the part
// belongs to a resource. A part is valid until the call returns. Each returns an error if the response
// cannot be read.
func (d *Draft) Each(part func(wire []byte, resource bool)) error { return d.each(part) }

// Size returns the size of the encoded response, in bytes.
func (d *Draft) Size() (size int, err error) {
	err = d.Each(func(wire []byte, _ bool) { size += len(wire) })
	return size, err
}

// Encode returns the encoded response; nil for a nil draft.
func (d *Draft) Encode() ([]byte, error) {
	if d == nil {
		return nil, nil
	}
	size, err := d.Size()
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, size)
	err = d.Each(func(wire []byte, _ bool) { out = append(out, wire...) })
	return out, err
}

// KeepResponse makes a draft of a response that does not change.
func KeepResponse(wire []byte) *Draft {
	return &Draft{func(part func([]byte, bool)) error {
		return fields.Each(wire, func(f *fields.Field) bool {
			part(f.Raw, f.Is(fields.ResponseResources))
			return true
		})
	}}
}

// RewriteResponse makes a draft of a response with other resources, in the same order. It leaves out
// those that are nil. A state-of-the-world response gets another version.
func RewriteResponse(delta bool, wire []byte, version string, resources [][]byte) *Draft {
	n := numbersOf(delta)
	return &Draft{func(part func([]byte, bool)) error {
		var heads heads
		i := -1
		return fields.Each(wire, func(f *fields.Field) bool {
			resource := f.Is(fields.ResponseResources)
			switch {
			case n.version != 0 && f.Is(n.version) && string(f.Value) != version:
				part(fields.AppendText(nil, n.version, version), false)
				return true
			case resource:
				if i++; resources[i] == nil {
					return true
				}
				if _, action, _ := f.To(resources[i], nil); action == fields.Replace {
					heads.emit(resources[i], part)
					return true
				}
			}
			part(f.Raw, resource)
			return true
		})
	}}
}

// Build makes a draft of a response of hdsd. A delta response may remove resources.
func Build(delta bool, typeURL, nonce, version string, resources [][]byte, removed []string) *Draft {
	n := numbersOf(delta)
	var head []byte
	if n.version != 0 {
		head = fields.AppendText(nil, n.version, version)
	}
	tail := fields.AppendText(fields.AppendText(nil, n.typeURL, typeURL), n.nonce, nonce)
	for _, name := range removed {
		tail = fields.AppendText(tail, n.removed, name)
	}
	return &Draft{func(part func([]byte, bool)) error {
		var heads heads
		part(head, false)
		for _, resource := range resources {
			heads.emit(resource, part)
		}
		part(tail, false)
		return nil
	}}
}

// heads encodes the head of each resource in the same memory.
type heads []byte

// emit calls part with the head of a resource, and with the resource.
func (h *heads) emit(resource []byte, part func([]byte, bool)) {
	*h = fields.AppendHead((*h)[:0], fields.ResponseResources, len(resource))
	part(*h, true)
	part(resource, true)
}
