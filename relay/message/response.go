package message

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/envoy/fields"
)

// numbers are the field numbers of a response, delta or state of the world; 0: it has no such field.
type numbers struct{ version, typeURL, nonce, removed protowire.Number }

func numbersOf(delta bool) numbers {
	if delta {
		return numbers{typeURL: fields.ResponseTypeURL, nonce: fields.ResponseNonce, removed: fields.DeltaResponseRemoved}
	}
	return numbers{version: fields.ResponseVersion, typeURL: fields.ResponseTypeURL, nonce: fields.ResponseNonce}
}

// Response has the fields of a discovery response that hdsd reads. It refers to the encoded response.
type Response struct {
	TypeURL, Nonce string
	Version        string   // of a state-of-the-world response
	Resources      [][]byte // encoded: each is a Resource (delta) or an Any (state of the world)
	Removed        []string // names
}

// Unit is an entry of a response: a resource, or a heartbeat.
type Unit struct {
	Name, Version string
	Body          []byte        // the encoded resource; nil for a heartbeat
	Wrapped       bool          // state of the world: the Any has a Resource
	TTL           time.Duration // clients keep the resource for so long unless the control plane renews it; 0: for ever
}

// TypeOf returns the type of a response.
func TypeOf(wire []byte) string {
	typeURL, _ := fields.Text(wire, fields.ResponseTypeURL) // an error in another field is for ParseResponse
	return typeURL
}

// MaxResources limits the resources of a response, removed ones included. An empty resource takes two
// bytes on the wire, and a hundred in memory.
const MaxResources = 1 << 19

// ParseResponse reads a response.
func ParseResponse(delta bool, wire []byte) (*Response, error) {
	r, n := &Response{}, numbersOf(delta)
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
		case f.Is(fields.ResponseResources):
			r.Resources = append(r.Resources, f.Value)
		}
		return len(r.Resources)+len(r.Removed) <= MaxResources
	})
	if err == nil && len(r.Resources)+len(r.Removed) > MaxResources {
		err = fmt.Errorf("it has more than %d resources", MaxResources)
	}
	return r, err
}

// ParseUnit reads a Resource (delta) or an Any (state of the world).
func ParseUnit(delta bool, wire []byte) (u Unit, err error) {
	if delta {
		return u, u.read(wire)
	}
	typeURL, value, err := unpack(wire)
	if err != nil {
		return u, err
	}
	if typeURL == fields.WrapperType {
		u.Wrapped = true
		err = u.read(value)
	} else {
		u.Body = value
	}
	if u.Name == "" {
		u.Name, _ = fields.Text(u.Body, fields.Name) // a body that cannot be read has no name
	}
	return u, err
}

// read reads a Resource.
func (u *Unit) read(wire []byte) (err error) {
	var packed []byte
	found := false
	if err = fields.Each(wire, func(f *fields.Field) bool {
		switch {
		case f.Is(fields.ResourceVersion):
			u.Version = string(f.Value)
		case f.Is(fields.ResourceName):
			u.Name = string(f.Value)
		case f.Is(fields.ResourceBody):
			packed, found = f.Value, true
		case f.Is(fields.ResourceTTL):
			u.TTL = max(fields.Duration(f.Value), 0)
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
		case f.Is(fields.AnyTypeURL):
			typeURL = string(f.Value)
		case f.Is(fields.AnyValue):
			value = f.Value
		}
		return true
	})
	return typeURL, value, err
}

// RewriteUnit puts another body into a Resource (delta) or an Any (state of the world). A Resource also
// gets another version, and the unit's time to live.
func RewriteUnit(delta bool, wire []byte, u *Unit, body []byte, version string) ([]byte, error) {
	switch {
	case delta:
		return rewriteResource(wire, u, body, version)
	case !u.Wrapped:
		return rewriteAny(wire, func([]byte) ([]byte, error) { return body, nil })
	}
	return rewriteAny(wire, func(resource []byte) ([]byte, error) { return rewriteResource(resource, u, body, version) })
}

func rewriteAny(wire []byte, change func([]byte) ([]byte, error)) ([]byte, error) {
	return fields.Rewrite(wire, 0, func(f *fields.Field) ([]byte, fields.Action, error) {
		if !f.Is(fields.AnyValue) {
			return nil, fields.Keep, nil
		}
		return f.To(change(f.Value))
	})
}

func rewriteResource(wire []byte, u *Unit, body []byte, version string) ([]byte, error) {
	versioned, timed := false, u.TTL == 0
	out, err := fields.Rewrite(wire, 0, func(f *fields.Field) ([]byte, fields.Action, error) {
		switch {
		case f.Is(fields.ResourceVersion):
			versioned = true
			return f.ToText(version)
		case f.Is(fields.ResourceTTL) && u.TTL != max(fields.Duration(f.Value), 0):
			if timed {
				return nil, fields.Drop, nil
			}
			timed = true
			return fields.AppendDuration(nil, u.TTL), fields.Replace, nil
		case f.Is(fields.ResourceTTL):
			timed = true
		case f.Is(fields.ResourceBody):
			return f.To(rewriteAny(f.Value, func([]byte) ([]byte, error) { return body, nil }))
		}
		return nil, fields.Keep, nil
	})
	if err == nil && !versioned && version != u.Version {
		out = append(fields.AppendText(nil, fields.ResourceVersion, version), out...)
	}
	if err == nil && !timed {
		out = fields.AppendBytes(slices.Clip(out), fields.ResourceTTL, fields.AppendDuration(nil, u.TTL))
	}
	return out, err
}
