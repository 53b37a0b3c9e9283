package xds

import (
	"bytes"
	"fmt"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/envoy/rules"
	"hdsd/source"
)

// examine decodes changed resources, and finds their faults.
func (t *table) examine(c *candidate, now time.Time) {
	before := c.previous()
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

// read decodes the new resources of a response, without Source.mu, so that nothing waits for it.
// Afterwards examine uses the result with the lock.
func (s *Source) read(t *table, u *update) {
	for i, previous := range s.knownOf(t, u) {
		item := &u.items[i]
		if previous == nil || item.wrong != "" || item.body.GetTypeUrl() != t.typeURL || bytes.Equal(previous.packed.GetValue(), item.body.GetValue()) {
			continue
		}
		item.decoded, item.wrong = t.decode(item.name, item.body.GetValue())
	}
}

// knownOf returns the known content of each item of a response: nil if it is not subscribed, an
// empty content if it is new.
func (s *Source) knownOf(t *table, u *update) []*content {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, empty := make([]*content, len(u.items)), &content{}
	for i := range u.items {
		item := &u.items[i]
		if item.name == "" {
			item.name = rules.Name(item.body.GetValue())
		}
		switch e := t.entries[item.name]; {
		case item.name == "" || e == nil && !t.wildcard():
		case e == nil || e.good == nil || e.stale:
			list[i] = empty
		default:
			list[i] = e.good
		}
	}
	return list
}

// decoded is the content of a resource. Its endpoints stay encoded.
type decoded struct {
	config    *clusterv3.Cluster // without its listed endpoints; nil for an assignment
	lists     *source.Assignment // those endpoints, or the assignment
	endpoints int                // in lists
	lease     time.Duration      // for an assignment: its endpoint_stale_after; 0: for ever
}

// decode decodes and checks a resource. wrong is its fault, if it has one.
func (t *table) decode(name string, data []byte) (_ *decoded, wrong string) {
	w := rules.WeighResource(t.typeURL, data)
	if excess := w.ExcessOfOne(); excess != "" {
		return nil, excess
	}
	if w.Endpoints > t.stock.perOne {
		return nil, rules.TooMany(w.Endpoints, t.stock.perOne)
	}
	target := &decoded{endpoints: w.Endpoints}
	if t.typeURL == rules.Cluster {
		target.config = &clusterv3.Cluster{}
		if wrong := readAs(name, data, target.config, target.config.GetName); wrong != "" {
			return nil, wrong
		}
		target.lists = source.TakeEndpoints(target.config)
		return target, ""
	}
	assignment := &endpointv3.ClusterLoadAssignment{}
	if wrong := readAs(name, data, assignment, assignment.GetClusterName); wrong != "" {
		return nil, wrong
	}
	target.lists = source.EncodeAssignmentAs(data, assignment)
	target.lease = envoy.Lease(data)
	return target, ""
}

// readAs decodes a resource into a message, and returns its fault.
func readAs(name string, data []byte, m proto.Message, check func() string) (wrong string) {
	if err := proto.Unmarshal(data, m); err != nil {
		return fmt.Sprintf("it cannot be decoded: %s", err)
	}
	if check() != name {
		return fmt.Sprintf("it calls itself %q", check())
	}
	violations := rules.Violations(m)
	if len(violations) == 0 {
		return ""
	}
	reason := violations[0].Field + ": " + violations[0].Reason
	if len(violations) > 1 {
		reason += fmt.Sprintf(" (and %d more)", len(violations)-1)
	}
	return reason
}
