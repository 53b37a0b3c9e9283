package file

import (
	"fmt"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/envoy/rules"
	"hdsd/internal/yamlpb"
	"hdsd/source"
)

// binary reads a file of binary protobuf, and keeps unknown fields. It returns the
// problems of the file as a whole.
func (c *contents) binary(file string, data []byte) []source.Problem {
	if len(data) == 0 {
		return unreadable(file, "is empty")
	}
	// The encoding does not name the message. A DiscoveryResponse has type URLs, a
	// bootstrap has something else in their place.
	response := &discoveryv3.DiscoveryResponse{}
	if small(data, response) && proto.Unmarshal(data, response) == nil && hasTypes(response) {
		c.listed = len(response.GetResources())
		for i, packed := range response.GetResources() {
			c.packed(file, i, packed)
		}
		return nil
	}
	bootstrap := &bootstrapv3.Bootstrap{}
	if small(data, bootstrap) && proto.Unmarshal(data, bootstrap) == nil && len(bootstrap.GetStaticResources().GetClusters()) > 0 {
		c.listed = len(bootstrap.GetStaticResources().GetClusters())
		for i, cluster := range bootstrap.GetStaticResources().GetClusters() {
			r := resource{file: file, name: cluster.GetName(), cluster: cluster}
			c.binaryResource(r, fmt.Sprintf("static_resources.clusters[%d]", i), cluster)
		}
		return nil
	}
	return unreadable(file, "is neither a DiscoveryResponse with resources nor a bootstrap with clusters, in protobuf's binary form")
}

// small reports whether a message may be decoded: it takes memory in proportion to its bytes.
func small(data []byte, m proto.Message) bool {
	w := rules.Weigh(m.ProtoReflect().Descriptor(), data)
	return w.Elements <= rules.MaxElements && w.Hollow() == ""
}

func hasTypes(response *discoveryv3.DiscoveryResponse) bool {
	for _, packed := range response.GetResources() {
		if !strings.Contains(packed.GetTypeUrl(), "/") {
			return false
		}
	}
	return len(response.ProtoReflect().GetUnknown()) == 0
}

func (c *contents) packed(file string, i int, packed *anypb.Any) {
	field := fmt.Sprintf("resources[%d]", i)
	if packed.GetTypeUrl() == rules.Wrapper {
		wrapper := &discoveryv3.Resource{}
		if err := proto.Unmarshal(packed.GetValue(), wrapper); err != nil {
			c.problems = append(c.problems, source.Problem{File: file, Resource: rules.Name(packed.GetValue()), Field: field, Message: fmt.Sprintf("cannot be decoded: %s", err)})
			return
		}
		field, packed = field+".resource", wrapper.GetResource()
	}
	r := resource{file: file, name: rules.Name(packed.GetValue())}
	var message proto.Message
	switch packed.GetTypeUrl() {
	case rules.Cluster:
		r.cluster = &clusterv3.Cluster{}
		message = r.cluster
	case rules.Assignment:
		message = &endpointv3.ClusterLoadAssignment{}
	default:
		c.problems = append(c.problems, source.Problem{File: file, Resource: r.name, Field: field, Message: rules.Wrong(packed.GetTypeUrl())})
		return
	}
	if excess := c.excess(rules.CountEncoded(packed.GetTypeUrl(), packed.GetValue())); excess != "" { // before it is decoded
		r.broken = true
		c.add(r, []source.Problem{{File: file, Resource: r.name, Field: field, Message: excess}})
		return
	}
	if excess := rules.Excess(packed.GetTypeUrl(), packed.GetValue()); excess != "" {
		r.broken = true
		c.add(r, []source.Problem{{File: file, Resource: r.name, Field: field, Message: excess}})
		return
	}
	if err := proto.Unmarshal(packed.GetValue(), message); err != nil {
		r.broken = true
		r.setMessage(message)
		c.add(r, []source.Problem{{File: file, Resource: r.name, Field: field, Message: fmt.Sprintf("cannot be decoded: %s", err)}})
		return
	}
	c.binaryResource(r, field, message)
}

func (c *contents) binaryResource(r resource, field string, message proto.Message) {
	if excess := c.excess(rules.Count(message)); excess != "" {
		r.broken = true
		r.setMessage(message)
		c.add(r, []source.Problem{{File: r.file, Resource: r.name, Field: field, Message: excess}})
		return
	}
	var problems []source.Problem
	for _, violation := range rules.Violations(message) {
		problems = append(problems, source.Problem{
			File: r.file, Resource: r.name, Field: field + "." + violation.Field, Message: violation.Reason,
		})
	}
	r.setMessage(message)
	c.places.add(&r, yamlpb.Node{})
	c.add(r, problems)
}
