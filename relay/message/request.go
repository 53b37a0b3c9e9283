package message

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/envoy/fields"
)

// Request has the fields of a discovery request that hdsd reads. It refers to the encoded request.
type Request struct {
	TypeURL, Nonce string
	Node           []byte // encoded; nil: it has none
	Refused        bool   // it has an error_detail

	Version string   // of a state-of-the-world request
	Names   []string // of a state-of-the-world request, or the subscriptions of a delta request

	Unsubscribe []string // of a delta request
	Claims      int      // of a delta request: number of initial_resource_versions
	Changes     bool     // of a delta request: it subscribes or unsubscribes
	Locators    bool     // of a delta request: it subscribes or unsubscribes by resource_locators

	wire []byte
}

// Head has the fields that hdsd reads of a request of any type. It refers to the encoded request.
type Head struct {
	TypeURL string
	Node    []byte // encoded; nil: it has none
	Answers bool   // it has the nonce of a response
	Refusal []byte // encoded error_detail; nil: it refuses nothing
	Changes bool   // of a delta request: it subscribes or unsubscribes
}

// HeadOf reads the head of a request.
func HeadOf(delta bool, wire []byte) (h Head, err error) {
	typeURL, node, nonce, refusal := protowire.Number(fields.RequestTypeURL), protowire.Number(fields.RequestNode), protowire.Number(fields.RequestNonce), protowire.Number(fields.RequestRefusal)
	if delta {
		typeURL, node, nonce, refusal = fields.DeltaRequestTypeURL, fields.DeltaRequestNode, fields.DeltaRequestNonce, fields.DeltaRequestRefusal
	}
	err = fields.Each(wire, func(f *fields.Field) bool {
		switch {
		case f.Is(typeURL):
			h.TypeURL = string(f.Value)
		case f.Is(node):
			h.Node = f.Value
		case f.Is(nonce):
			h.Answers = len(f.Value) > 0
		case f.Is(refusal):
			h.Refusal = f.Value
		case delta && (f.Is(fields.DeltaRequestSubscribe) || f.Is(fields.DeltaRequestUnsubscribe)):
			h.Changes = true
		}
		return true
	})
	return h, err
}

// Text is the message of a refusal.
func (h *Head) Text() string {
	text, _ := fields.Text(h.Refusal, fields.StatusMessage) // empty if it cannot be read
	return text
}

// ParseRequest reads a request.
func ParseRequest(delta bool, wire []byte) (*Request, error) {
	r := &Request{wire: wire}
	read := r.readState
	if delta {
		read = r.readDelta
	}
	return r, fields.Each(wire, func(f *fields.Field) bool { read(f); return true })
}

func (r *Request) readState(f *fields.Field) {
	switch {
	case f.Is(fields.RequestVersion):
		r.Version = string(f.Value)
	case f.Is(fields.RequestNode):
		r.Node = f.Value
	case f.Is(fields.RequestNames):
		r.Names = append(r.Names, string(f.Value))
	case f.Is(fields.RequestTypeURL):
		r.TypeURL = string(f.Value)
	case f.Is(fields.RequestNonce):
		r.Nonce = string(f.Value)
	case f.Is(fields.RequestRefusal):
		r.Refused = true
	}
}

func (r *Request) readDelta(f *fields.Field) {
	switch {
	case f.Is(fields.DeltaRequestNode):
		r.Node = f.Value
	case f.Is(fields.DeltaRequestTypeURL):
		r.TypeURL = string(f.Value)
	case f.Is(fields.DeltaRequestSubscribe):
		r.Names, r.Changes = append(r.Names, string(f.Value)), true
	case f.Is(fields.DeltaRequestUnsubscribe):
		r.Unsubscribe, r.Changes = append(r.Unsubscribe, string(f.Value)), true
	case f.Is(fields.DeltaRequestLocators), f.Is(fields.DeltaRequestGivenUp):
		r.Changes, r.Locators = true, true
	case f.Is(fields.DeltaRequestVersions):
		r.Claims++
	case f.Is(fields.DeltaRequestNonce):
		r.Nonce = string(f.Value)
	case f.Is(fields.DeltaRequestRefusal):
		r.Refused = true
	}
}

// Claimed returns the names in the initial_resource_versions of a delta request.
func (r *Request) Claimed() map[string]bool {
	names := make(map[string]bool, r.Claims)
	for f := range fields.All(r.wire) { // ParseRequest has read all of it
		if f.Is(fields.DeltaRequestVersions) {
			name, _ := entry(f.Value)
			names[string(name)] = true
		}
	}
	return names
}

// entry reads an entry of a map of texts.
func entry(wire []byte) (key, value []byte) {
	for f := range fields.All(wire) { // an entry that cannot be read has no name
		switch {
		case f.Is(1):
			key = f.Value
		case f.Is(2):
			value = f.Value
		}
	}
	return key, value
}

// claimGrowth is about the number of bytes by which a mark makes an entry of initial_resource_versions
// longer.
const claimGrowth = len(marker) + len("0.1z141z3") + 2

// Edit is a change of a request.
type Edit struct {
	Nonce    string              // replaces that of the request
	NoAnswer bool                // removes the error_detail: the request answers no response
	Version  func(string) string // replaces the version of a state-of-the-world request

	// Known reports whether hdsd has a resource of the initial_resource_versions of a delta request. It
	// gets the version that the client has sent. If hdsd does not have the resource, the control plane
	// gets another version, so that it sends the resource. Name and version are valid until Known returns.
	Known      func(name, version []byte) bool
	Claims     int  // number of initial_resource_versions
	NoVersions bool // the other version is empty, so that the request does not grow
}

// RewriteRequest changes a request. It returns wire itself if nothing changes.
func RewriteRequest(delta bool, wire []byte, e *Edit) ([]byte, error) {
	nonce, refusal := protowire.Number(fields.RequestNonce), protowire.Number(fields.RequestRefusal)
	if delta {
		nonce, refusal = fields.DeltaRequestNonce, fields.DeltaRequestRefusal
	}
	var claim, mark []byte // all claims use the same memory
	return fields.Rewrite(wire, e.Claims*claimGrowth, func(f *fields.Field) ([]byte, fields.Action, error) {
		switch {
		case f.Is(nonce):
			return f.ToText(e.Nonce)
		case f.Is(refusal) && e.NoAnswer:
			return nil, fields.Drop, nil
		case !delta && f.Is(fields.RequestVersion):
			return f.ToText(e.Version(string(f.Value)))
		case delta && f.Is(fields.DeltaRequestVersions):
			name, version := entry(f.Value)
			switch known := e.Known(name, version); {
			case !known && e.NoVersions:
				version = nil
			case !known: // the control plane has to know the name: it may have removed the resource
				version = appendMark(mark[:0], version, 0)
				mark = version
			case bytes.Contains(version, []byte(marker)):
				version = []byte(Original(string(version)))
			default:
				return nil, fields.Keep, nil
			}
			if claim = fields.AppendBytes(claim[:0], 1, name); len(version) > 0 {
				claim = fields.AppendBytes(claim, 2, version)
			}
			return claim, fields.Replace, nil
		}
		return nil, fields.Keep, nil
	})
}

// RequestType is the number of the field with the type of a request.
func RequestType(delta bool) protowire.Number {
	if delta {
		return fields.DeltaRequestTypeURL
	}
	return fields.RequestTypeURL
}
