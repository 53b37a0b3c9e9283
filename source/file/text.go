package file

import (
	"fmt"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/rules"
	"hdsd/internal/yamlpb"
	"hdsd/source"
)

const typeField = "@type"

// text reads YAML and JSON. It returns the problems of the file as a whole.
func (c *contents) text(file string, data []byte) []source.Problem {
	if c.places == nil && c.parts(file, data) {
		return nil
	}
	return c.whole(file, data)
}

func (c *contents) whole(file string, data []byte) []source.Problem {
	root, problems := yamlpb.ParseAsEnvoy(file, data)
	if yamlpb.Refused(problems) {
		return converted("", problems)
	}
	c.problems = append(c.problems, converted("", problems)...)
	if !root.IsMapping() {
		return converted("", []yamlpb.Problem{root.Problem("", "needs a mapping with resources (a DiscoveryResponse) or static_resources (a bootstrap)")})
	}
	_, bootstrap := root.Field("static_resources")
	_, response := root.Field("resources")
	switch {
	case bootstrap && response:
		return converted("", []yamlpb.Problem{root.Problem("resources", "cannot stand beside static_resources: use a file for each")})
	case bootstrap:
		return c.bootstrap(root)
	case response || root.Has("version_info") || root.Has("type_url"):
		return c.response(root)
	case root.Has("node") || root.Has("admin") || root.Has("dynamic_resources"):
		empty := root.Problem("", "is a bootstrap without static_resources: it gives no cluster")
		empty.Warning = true
		c.problems = append(c.problems, source.Problem(empty))
		return nil
	default:
		return converted("", []yamlpb.Problem{root.Problem("", "has neither resources (a DiscoveryResponse) nor static_resources (a bootstrap)")})
	}
}

// converted converts problems of package yamlpb to those of a source.
func converted(name string, problems []yamlpb.Problem) []source.Problem {
	list := make([]source.Problem, len(problems))
	for i, problem := range problems {
		list[i] = source.Problem(problem)
		list[i].Resource = name
	}
	return list
}

// elements returns the elements of a list. A mapping is a list of one, and anything
// else a problem.
func elements(parent yamlpb.Node, name string) ([]yamlpb.Node, []yamlpb.Problem) {
	list, ok := parent.Field(name)
	if ok && !list.IsList() && !list.IsMapping() {
		return nil, []yamlpb.Problem{parent.Problem(name, "needs a list")}
	}
	return list.Elements(), nil
}

// bootstrap reads only the clusters of a bootstrap.
func (c *contents) bootstrap(root yamlpb.Node) []source.Problem {
	static, _ := root.Field("static_resources")
	if !static.IsMapping() {
		return converted("", []yamlpb.Problem{root.Problem("static_resources", "needs a mapping")})
	}
	problems := append(root.Repeated(), static.Repeated()...)
	clusters, wrong := elements(static, "clusters")
	if problems = append(problems, wrong...); len(problems) > 0 {
		return converted("", problems)
	}
	c.listed = len(clusters)
	for _, node := range clusters {
		c.textCluster(node, nil)
	}
	return nil
}

func (c *contents) response(root yamlpb.Node) []source.Problem {
	problems := root.Decode(&discoveryv3.DiscoveryResponse{}, "resources")
	resources, wrong := elements(root, "resources")
	if problems = append(problems, wrong...); len(problems) > 0 {
		return converted("", problems)
	}
	c.listed = len(resources)
	for _, node := range resources {
		c.resource(node)
	}
	return nil
}

func (c *contents) resource(node yamlpb.Node) {
	url, _ := textOf(node, typeField)
	if url == rules.Wrapper {
		c.wrapped(node)
	} else {
		c.typed(node, url, nil)
	}
}

// wrapped reads the resource in an envelope, whose own name does not count.
func (c *contents) wrapped(node yamlpb.Node) {
	problems := node.Decode(&discoveryv3.Resource{}, typeField, "resource")
	inside, ok := node.Field("resource")
	if !ok {
		name, _ := textOf(node, "name")
		c.problems = append(c.problems, converted(name, append(problems, node.Problem("resource", "is missing: give it a value")))...)
		return
	}
	url, _ := textOf(inside, typeField)
	c.typed(inside, url, problems)
}

// typed reads a resource of a type. The problems are earlier ones.
func (c *contents) typed(node yamlpb.Node, url string, problems []yamlpb.Problem) {
	switch url {
	case rules.Cluster:
		c.textCluster(node, problems)
	case rules.Assignment:
		c.textAssignment(node, problems)
	default:
		problem := node.Problem("", "%s", rules.Wrong(url))
		problem.Resource, _ = textOf(node, "name")
		c.problems = append(c.problems, source.Problem(problem))
	}
}

func textOf(node yamlpb.Node, field string) (string, bool) {
	value, _ := node.Field(field)
	return value.Text()
}

func (c *contents) textCluster(node yamlpb.Node, problems []yamlpb.Problem) {
	r := resource{cluster: &clusterv3.Cluster{}}
	r.name, _ = textOf(node, "name")
	c.textResource(node, r, r.cluster, problems)
}

func (c *contents) textAssignment(node yamlpb.Node, problems []yamlpb.Problem) {
	r := resource{}
	r.name, _ = textOf(node, "cluster_name")
	c.textResource(node, r, &endpointv3.ClusterLoadAssignment{}, problems)
}

func (c *contents) textResource(node yamlpb.Node, r resource, message proto.Message, problems []yamlpb.Problem) {
	problems = append(problems, node.Decode(message, typeField)...)
	if excess := c.excess(rules.Count(message)); excess != "" {
		problems = append(problems, node.Problem("", "%s", excess))
	}
	unread := len(problems)
	r.broken = unread > 0
	if !r.broken || c.places != nil {
		for _, violation := range rules.Violations(message) {
			if p := node.Problem(violation.Field, "%s", violation.Reason); !concerns(problems[:unread], p.Field) {
				problems = append(problems, p)
			}
		}
	}
	base := node.Problem("", "")
	r.file, r.line = base.File, base.Line
	r.setMessage(message)
	c.places.add(&r, node)
	c.add(r, converted(r.name, problems))
}

// setMessage encodes the endpoints of a message.
func (r *resource) setMessage(message proto.Message) {
	if a, alone := message.(*endpointv3.ClusterLoadAssignment); alone {
		r.lists = source.EncodeAssignment(a)
	} else {
		r.lists = source.TakeEndpoints(r.cluster)
	}
}

// concerns reports whether a problem is with a field, with a parent of it, or with a
// part of it.
func concerns(problems []yamlpb.Problem, field string) bool {
	return slices.ContainsFunc(problems, func(p yamlpb.Problem) bool {
		return strings.HasPrefix(p.Field+".", field+".") || strings.HasPrefix(p.Field, field+"[") ||
			strings.HasPrefix(field, p.Field+".") || strings.HasPrefix(field, p.Field+"[")
	})
}

// add adds a resource with its problems. One without a name cannot be listed: only its
// problems stay.
func (c *contents) add(r resource, problems []source.Problem) {
	c.problems = append(c.problems, problems...)
	if len(problems) > 0 {
		first := problems[0]
		if first.Line > 0 {
			first.Resource = "" // the reason stands beside the cluster's name
		}
		r.reason = first.String()
		if len(problems) > 1 {
			r.reason += fmt.Sprintf(" (and %d more)", len(problems)-1)
		}
	}
	if r.name == "" {
		return
	}
	c.resources = append(c.resources, r)
	if !r.broken {
		c.read++
	}
}
