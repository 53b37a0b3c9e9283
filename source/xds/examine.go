package xds

import (
	"bytes"
	"fmt"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/envoyrules"
	"hdsd/source"
)

// examine decodes what has changed, and finds faults in it.
func (t *table) examine(c *candidate, now time.Time) {
	before := c.known()
	if !c.received.IsZero() {
		now = c.received
	}
	switch {
	case c.wrong != "":
	case c.body == nil && before != nil && before.version == c.version:
		c.heartbeat = true
	case c.body == nil:
		c.wrong = fmt.Sprintf("it has no body, and its version %q is not known here", c.version)
	case c.body.GetTypeUrl() != t.typeURL:
		c.wrong = fmt.Sprintf("its type is %q, but the response is of type %q", c.body.GetTypeUrl(), t.typeURL)
	case before != nil && !c.entry.stale && bytes.Equal(before.packed.GetValue(), c.body.GetValue()):
		c.content = &content{version: c.version, packed: before.packed, decoded: before.decoded, updated: now}
	default:
		if c.decoded == nil { // not subscribed when the response came
			c.decoded, c.wrong = t.decode(c.name, c.body.GetValue())
		}
		if c.wrong == "" {
			c.content = &content{version: c.version, packed: c.body, decoded: c.decoded, updated: now}
		}
	}
}

// read decodes what is new in a response, without Source.mu. So nobody waits for it.
// Afterwards examine uses the result with the lock.
func (s *Source) read(t *table, u *update) {
	for i, known := range s.knownOf(t, u) {
		one := &u.items[i]
		if known == nil || one.wrong != "" || one.body.GetTypeUrl() != t.typeURL || bytes.Equal(known.packed.GetValue(), one.body.GetValue()) {
			continue
		}
		one.decoded, one.wrong = t.decode(one.name, one.body.GetValue())
	}
}

// knownOf returns what is known of each item of a response: nil if it is not
// subscribed, an empty content if it is new.
func (s *Source) knownOf(t *table, u *update) []*content {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, none := make([]*content, len(u.items)), &content{}
	for i := range u.items {
		one := &u.items[i]
		if one.name == "" {
			one.name = envoyrules.Name(one.body.GetValue())
		}
		switch e := t.entries[one.name]; {
		case one.name == "" || e == nil && !t.wildcard():
		case e == nil || e.good == nil || e.stale:
			all[i] = none
		default:
			all[i] = e.good
		}
	}
	return all
}

// decoded is what a resource says. Its endpoints stay encoded.
type decoded struct {
	config    *clusterv3.Cluster // without the endpoints that it lists; nil of an assignment
	lists     *source.Assignment // those endpoints, or the assignment
	endpoints int                // in lists
	lease     time.Duration      // of an assignment: its endpoint_stale_after; 0: for ever
}

// decode decodes and checks a resource. wrong is its fault, if it has one.
func (t *table) decode(name string, data []byte) (_ *decoded, wrong string) {
	w := envoyrules.WeighResource(t.typeURL, data)
	if excess := w.ExcessOfOne(); excess != "" {
		return nil, excess
	}
	if w.Endpoints > t.stock.perOne {
		return nil, envoyrules.TooMany(w.Endpoints, t.stock.perOne)
	}
	of := &decoded{endpoints: w.Endpoints}
	if t.typeURL == envoyrules.Cluster {
		of.config = &clusterv3.Cluster{}
		if wrong := readAs(name, data, of.config, of.config.GetName); wrong != "" {
			return nil, wrong
		}
		of.lists = source.TakeEndpoints(of.config)
		return of, ""
	}
	assignment := &endpointv3.ClusterLoadAssignment{}
	if wrong := readAs(name, data, assignment, assignment.GetClusterName); wrong != "" {
		return nil, wrong
	}
	of.lists = source.EncodeAssignmentAs(data, assignment)
	of.lease = source.Lease(data)
	return of, ""
}

// readAs decodes a resource into a message, and says what is wrong with it.
func readAs(name string, data []byte, into proto.Message, own func() string) (wrong string) {
	if err := proto.Unmarshal(data, into); err != nil {
		return fmt.Sprintf("it cannot be decoded: %s", err)
	}
	if own() != name {
		return fmt.Sprintf("it calls itself %q", own())
	}
	violations := envoyrules.Violations(into)
	if len(violations) == 0 {
		return ""
	}
	reason := violations[0].Field + ": " + violations[0].Reason
	if len(violations) > 1 {
		reason += fmt.Sprintf(" (and %d more)", len(violations)-1)
	}
	return reason
}
