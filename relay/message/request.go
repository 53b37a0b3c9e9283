package message

import (
	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/internal/fields"
)

// Field numbers of the two kinds of requests.
const (
	stateVersion, stateNode, stateNames, stateType, stateNonce, stateRefusal = 1, 2, 3, 4, 5, 6

	deltaNode, deltaType, deltaSubscribe, deltaUnsubscribe, deltaInitial, deltaNonce, deltaRefusal = 1, 2, 3, 4, 5, 6, 7

	deltaLocatorsSubscribe, deltaLocatorsUnsubscribe = 8, 9
)

// Request is what matters of a discovery request. It refers to the encoded one.
type Request struct {
	TypeURL, Nonce string
	Node           []byte // encoded; nil: it has none
	Refused        bool   // it has an error_detail

	Version string   // of a state-of-the-world request
	Names   []string // of the same, or what a delta request subscribes to

	Unsubscribe []string // of a delta request
	Claims      int      // of a delta request: how many initial_resource_versions it has
	Changes     bool     // of a delta request: it subscribes or unsubscribes
	Locators    bool     // of a delta request: it does by resource_locators

	wire []byte
}

// Head is what concerns hdsd of a request of any type. It refers to the encoded one.
type Head struct {
	TypeURL string
	Node    []byte // encoded; nil: it has none
	Answers bool   // it has the nonce of a response
	Refusal []byte // encoded error_detail; nil: it refuses nothing
	Changes bool   // of a delta request: it subscribes or unsubscribes
}

// HeadOf reads the head of a request.
func HeadOf(delta bool, wire []byte) (h Head, err error) {
	typeURL, node, nonce, refusal := protowire.Number(stateType), protowire.Number(stateNode), protowire.Number(stateNonce), protowire.Number(stateRefusal)
	if delta {
		typeURL, node, nonce, refusal = deltaType, deltaNode, deltaNonce, deltaRefusal
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
		case delta && (f.Is(deltaSubscribe) || f.Is(deltaUnsubscribe)):
			h.Changes = true
		}
		return true
	})
	return h, err
}

// Text is the message of a refusal.
func (h *Head) Text() (text string) {
	_ = fields.Each(h.Refusal, func(f *fields.Field) bool { // what cannot be read says nothing
		if f.Is(2) {
			text = string(f.Value)
		}
		return true
	})
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
	case f.Is(stateVersion):
		r.Version = string(f.Value)
	case f.Is(stateNode):
		r.Node = f.Value
	case f.Is(stateNames):
		r.Names = append(r.Names, string(f.Value))
	case f.Is(stateType):
		r.TypeURL = string(f.Value)
	case f.Is(stateNonce):
		r.Nonce = string(f.Value)
	case f.Is(stateRefusal):
		r.Refused = true
	}
}

func (r *Request) readDelta(f *fields.Field) {
	switch {
	case f.Is(deltaNode):
		r.Node = f.Value
	case f.Is(deltaType):
		r.TypeURL = string(f.Value)
	case f.Is(deltaSubscribe):
		r.Names, r.Changes = append(r.Names, string(f.Value)), true
	case f.Is(deltaUnsubscribe):
		r.Unsubscribe, r.Changes = append(r.Unsubscribe, string(f.Value)), true
	case f.Is(deltaLocatorsSubscribe), f.Is(deltaLocatorsUnsubscribe):
		r.Changes, r.Locators = true, true
	case f.Is(deltaInitial):
		r.Claims++
	case f.Is(deltaNonce):
		r.Nonce = string(f.Value)
	case f.Is(deltaRefusal):
		r.Refused = true
	}
}

// EachClaim calls visit with each of the initial_resource_versions of a delta request. There
// may be a million, so they are not kept.
func (r *Request) EachClaim(visit func(name, version string)) {
	_ = fields.Each(r.wire, func(f *fields.Field) bool { // it was read once
		if f.Is(deltaInitial) {
			visit(entry(f.Value))
		}
		return true
	})
}

// entry reads an entry of a map of texts.
func entry(wire []byte) (key, value string) {
	_ = fields.Each(wire, func(f *fields.Field) bool { // what cannot be read names nothing
		switch {
		case f.Is(1):
			key = string(f.Value)
		case f.Is(2):
			value = string(f.Value)
		}
		return true
	})
	return key, value
}

// Edit is a change of a request.
type Edit struct {
	Nonce    string              // in place of the request's
	NoAnswer bool                // it neither takes nor refuses a response: no error_detail
	Version  func(string) string // of a state-of-the-world request
	Initial  func(name, version string) string
}

// RewriteRequest changes a request. It returns wire itself if nothing changes.
func RewriteRequest(delta bool, wire []byte, e *Edit) ([]byte, error) {
	nonce, refusal := protowire.Number(stateNonce), protowire.Number(stateRefusal)
	if delta {
		nonce, refusal = deltaNonce, deltaRefusal
	}
	return fields.Rewrite(wire, func(f *fields.Field) ([]byte, fields.Action, error) {
		switch {
		case f.Is(nonce):
			return f.ToText(e.Nonce)
		case f.Is(refusal) && e.NoAnswer:
			return nil, fields.Drop, nil
		case !delta && f.Is(stateVersion):
			return f.ToText(e.Version(string(f.Value)))
		case delta && f.Is(deltaInitial):
			name, before := entry(f.Value)
			if after := e.Initial(name, before); after != before {
				one := fields.AppendText(nil, 1, name)
				return fields.AppendText(one, 2, after), fields.Replace, nil
			}
		}
		return nil, fields.Keep, nil
	})
}

// RequestType is the number of the field with the type of a request.
func RequestType(delta bool) protowire.Number {
	if delta {
		return deltaType
	}
	return stateType
}
