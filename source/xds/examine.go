package xds

import (
	"bytes"
	"fmt"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/envoyrules"
)

// examine decodes what has changed, and finds faults in it.
func (t *table) examine(c *candidate, now time.Time) {
	before := c.known()
	switch {
	case c.wrong != "":
	case c.body == nil && before != nil && before.version == c.version:
		c.heartbeat = true
	case c.body == nil:
		c.wrong = fmt.Sprintf("it has no body, and its version %q is not known here", c.version)
	case c.body.GetTypeUrl() != t.typeURL:
		c.wrong = fmt.Sprintf("its type is %q, but the response is of type %q", c.body.GetTypeUrl(), t.typeURL)
	case before != nil && bytes.Equal(before.packed.GetValue(), c.body.GetValue()):
		c.content = &content{version: c.version, packed: before.packed, message: before.message, endpoints: before.endpoints, updated: now}
	default:
		if c.message == nil { // not subscribed when the response came
			c.message, c.endpoints, c.wrong = t.decode(c.name, c.body.GetValue())
		}
		if c.wrong == "" {
			c.content = &content{version: c.version, packed: c.body, message: c.message, endpoints: c.endpoints, updated: now}
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
		one.message, one.endpoints, one.wrong = t.decode(one.name, one.body.GetValue())
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
		case e == nil || e.good == nil:
			all[i] = none
		default:
			all[i] = e.good
		}
	}
	return all
}

// decode reads a resource and counts its endpoints, or says what is wrong with it.
func (t *table) decode(name string, data []byte) (_ proto.Message, endpoints int, wrong string) {
	var message proto.Message
	var own string
	w := weigh(resources[t.typeURL], data)
	if excess := w.excess(); excess != "" {
		return nil, 0, excess
	}
	if w.endpoints > t.stock.perOne {
		return nil, 0, envoyrules.TooMany(w.endpoints, t.stock.perOne)
	}
	if t.typeURL == envoyrules.Cluster {
		cluster := &clusterv3.Cluster{}
		if err := proto.Unmarshal(data, cluster); err != nil {
			return nil, 0, fmt.Sprintf("it cannot be decoded: %s", err)
		}
		message, own = cluster, cluster.GetName()
	} else {
		assignment := &endpointv3.ClusterLoadAssignment{}
		if err := proto.Unmarshal(data, assignment); err != nil {
			return nil, 0, fmt.Sprintf("it cannot be decoded: %s", err)
		}
		message, own = assignment, assignment.GetClusterName()
	}
	if own != name {
		return nil, 0, fmt.Sprintf("it calls itself %q", own)
	}
	if violations := envoyrules.Violations(message); len(violations) > 0 {
		reason := violations[0].Field + ": " + violations[0].Reason
		if len(violations) > 1 {
			reason += fmt.Sprintf(" (and %d more)", len(violations)-1)
		}
		return nil, 0, reason
	}
	return message, w.endpoints, ""
}
