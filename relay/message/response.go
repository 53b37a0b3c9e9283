package message

import (
	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/relay/fields"
)

// Field numbers.
const (
	anyType, anyValue = 1, 2

	resourceVersion, resourceBody, resourceName = 1, 2, 3

	wrapperType = "type.googleapis.com/envoy.service.discovery.v3.Resource"
)

// numbers are the field numbers of the two kinds of responses; 0: there is no such field.
type numbers struct{ version, resources, typeURL, nonce, removed protowire.Number }

func numbersOf(delta bool) numbers {
	if delta {
		return numbers{resources: 2, typeURL: 4, nonce: 5, removed: 6}
	}
	return numbers{version: 1, resources: 2, typeURL: 4, nonce: 5}
}

// Response is what matters of a discovery response. It refers to the encoded one.
type Response struct {
	TypeURL, Nonce string
	Version        string // of a state-of-the-world response
	Units          []Unit
	Removed        []string
}

// Unit is a resource as it stands in a response.
type Unit struct {
	Name, Version string
	Body          []byte // the encoded resource; nil for a heartbeat
	Extra         []byte // other fields of its Resource
	Wrapped       bool   // state of the world: it is in a Resource
}

// TypeOf returns the type of a response.
func TypeOf(wire []byte) string {
	typeURL := ""
	_ = fields.Each(wire, func(f *fields.Field) bool { // the rest is not ours to judge
		if f.Is(4) {
			typeURL = string(f.Value)
		}
		return true
	})
	return typeURL
}

// ParseResponse reads a response.
func ParseResponse(delta bool, wire []byte) (*Response, error) {
	r, n := &Response{}, numbersOf(delta)
	var wrong error
	err := fields.Each(wire, func(f *fields.Field) bool {
		switch {
		case n.version != 0 && f.Is(n.version):
			r.Version = string(f.Value)
		case f.Is(n.typeURL):
			r.TypeURL = string(f.Value)
		case f.Is(n.nonce):
			r.Nonce = string(f.Value)
		case n.removed != 0 && f.Is(n.removed):
			r.Removed = append(r.Removed, string(f.Value))
		case f.Is(n.resources):
			var u Unit
			if u, wrong = unitOf(delta, f.Value); wrong != nil {
				return false
			}
			r.Units = append(r.Units, u)
		}
		return true
	})
	if err == nil {
		err = wrong
	}
	return r, err
}

// unitOf reads a Resource (delta) or an Any (state of the world).
func unitOf(delta bool, wire []byte) (u Unit, err error) {
	if delta {
		return u, u.read(wire)
	}
	typeURL, value, err := unpack(wire)
	if err != nil {
		return u, err
	}
	if typeURL == wrapperType {
		u.Wrapped = true
		err = u.read(value)
	} else {
		u.Body = value
	}
	if u.Name == "" {
		u.Name = nameOf(u.Body)
	}
	return u, err
}

// read reads a Resource.
func (u *Unit) read(wire []byte) (err error) {
	var packed []byte
	found := false
	if err = fields.Each(wire, func(f *fields.Field) bool {
		switch {
		case f.Is(resourceVersion):
			u.Version = string(f.Value)
		case f.Is(resourceName):
			u.Name = string(f.Value)
		case f.Is(resourceBody):
			packed, found = f.Value, true
		default:
			u.Extra = append(u.Extra, f.Raw...)
		}
		return true
	}); err != nil || !found {
		return err
	}
	if _, u.Body, err = unpack(packed); u.Body == nil {
		u.Body = []byte{}
	}
	return err
}

// unpack reads an Any.
func unpack(wire []byte) (typeURL string, value []byte, err error) {
	err = fields.Each(wire, func(f *fields.Field) bool {
		switch {
		case f.Is(anyType):
			typeURL = string(f.Value)
		case f.Is(anyValue):
			value = f.Value
		}
		return true
	})
	return typeURL, value, err
}

// nameOf returns the name of an encoded Cluster or ClusterLoadAssignment.
func nameOf(body []byte) (name string) {
	_ = fields.Each(body, func(f *fields.Field) bool { // a body that cannot be read has no name
		if f.Is(1) {
			name = string(f.Value)
		}
		return true
	})
	return name
}

// Change is what becomes of a unit.
type Change struct {
	Body    []byte
	Version string // of a delta response
	Drop    bool
}

// RewriteResponse changes the units of a response, and the version of one that is state
// of the world. It returns wire itself if nothing changes.
func RewriteResponse(delta bool, wire []byte, version string, units []Unit, changes []Change) ([]byte, error) {
	n, i := numbersOf(delta), -1
	return fields.Rewrite(wire, func(f *fields.Field) ([]byte, bool, error) {
		switch {
		case n.version != 0 && f.Is(n.version) && string(f.Value) != version:
			return fields.AppendText(nil, n.version, version), true, nil
		case f.Is(n.resources):
			if i++; changes[i].Drop {
				return nil, true, nil
			}
			after, err := rewriteUnit(delta, f.Value, &units[i], &changes[i])
			if err != nil || same(after, f.Value) {
				return nil, false, err
			}
			return fields.Bytes(n.resources, after), true, nil
		}
		return nil, false, nil
	})
}

func same(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// rewriteUnit changes a Resource (delta) or an Any (state of the world).
func rewriteUnit(delta bool, wire []byte, u *Unit, c *Change) ([]byte, error) {
	switch {
	case delta:
		return rewriteResource(wire, u, c)
	case !u.Wrapped:
		return rewriteAny(wire, func([]byte) ([]byte, error) { return c.Body, nil })
	}
	return rewriteAny(wire, func(inner []byte) ([]byte, error) { return rewriteResource(inner, u, c) })
}

func rewriteAny(wire []byte, change func([]byte) ([]byte, error)) ([]byte, error) {
	return fields.Rewrite(wire, func(f *fields.Field) ([]byte, bool, error) {
		if !f.Is(anyValue) {
			return nil, false, nil
		}
		after, err := change(f.Value)
		if err != nil || same(after, f.Value) {
			return nil, false, err
		}
		return fields.Bytes(anyValue, after), true, nil
	})
}

func rewriteResource(wire []byte, u *Unit, c *Change) ([]byte, error) {
	versioned := false
	out, err := fields.Rewrite(wire, func(f *fields.Field) ([]byte, bool, error) {
		switch {
		case f.Is(resourceVersion):
			versioned = true
			if string(f.Value) == c.Version {
				return nil, false, nil
			}
			return fields.AppendText(nil, resourceVersion, c.Version), true, nil
		case f.Is(resourceBody):
			after, err := rewriteAny(f.Value, func([]byte) ([]byte, error) { return c.Body, nil })
			if err != nil || same(after, f.Value) {
				return nil, false, err
			}
			return fields.Bytes(resourceBody, after), true, nil
		}
		return nil, false, nil
	})
	if err == nil && !versioned && c.Version != u.Version {
		out = append(fields.AppendText(nil, resourceVersion, c.Version), out...)
	}
	return out, err
}

// Build makes a response of hdsd's own.
func Build(delta bool, typeURL, nonce, version string, units []Unit) []byte {
	n := numbersOf(delta)
	var out []byte
	if n.version != 0 {
		out = fields.AppendText(out, n.version, version)
	}
	for i := range units {
		out = fields.AppendBytes(out, n.resources, buildUnit(delta, typeURL, &units[i]))
	}
	out = fields.AppendText(out, n.typeURL, typeURL)
	return fields.AppendText(out, n.nonce, nonce)
}

func buildUnit(delta bool, typeURL string, u *Unit) []byte {
	packed := pack(typeURL, u.Body)
	if !delta && !u.Wrapped {
		return packed
	}
	out := fields.AppendText(nil, resourceVersion, u.Version)
	out = fields.AppendBytes(out, resourceBody, packed)
	out = append(fields.AppendText(out, resourceName, u.Name), u.Extra...)
	if delta {
		return out
	}
	return pack(wrapperType, out)
}

func pack(typeURL string, value []byte) []byte {
	return fields.AppendBytes(fields.AppendText(nil, anyType, typeURL), anyValue, value)
}
