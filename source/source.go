package source

import (
	"cmp"
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/envoy"
)

// Set is the content of one source at one moment. It is immutable once handed on. An unchanged
// cluster keeps its pointer from one Set to the next.
type Set struct {
	Source   string
	Clusters []*Cluster // by Name, which is unique
	Problems []Problem

	// Awaited means that the source has not answered since hdsd's start, and hdsd waits for it.
	// Unread means that hdsd waits no longer. In both cases, Clusters come from before the
	// start, if they are stored, and a missing cluster may exist.
	Awaited, Unread bool

	// Kept means that hdsd refuses the latest version of the source as a whole. Clusters are
	// those of the version before.
	Kept bool
}

// Answered reports whether the source has answered since the start.
func (s *Set) Answered() bool { return s != nil && !s.Awaited && !s.Unread }

// Cluster is one cluster with its endpoints.
type Cluster struct {
	Source string // name of the source it comes from

	// Name identifies the cluster everywhere in hdsd. For the relay's clusters, it may differ
	// from the name outside (see Outside). Its endpoints are published under ServiceName: an EDS
	// cluster's service_name, else Name, whatever the name in Assignment. The relay publishes
	// them itself, and has Name there.
	Name, ServiceName string

	// Config is the cluster as the source sent it, without the endpoints that it lists
	// (Message has them). It is nil for a lone ClusterLoadAssignment, and for an
	// unreadable cluster. Lone tells the two apart, even if the assignment is unreadable
	// too.
	Config *clusterv3.Cluster
	Lone   bool

	// Assignment is the endpoints as the source sent them, unknown fields included. It
	// is nil if there are none, such as for an EDS cluster whose ClusterLoadAssignment
	// is missing. AssignmentSource names their source if it is not Source.
	Assignment       *Assignment
	AssignmentSource string

	// Stale means that the lease of Assignment has ended (policy.endpoint_stale_after): it has
	// no endpoints until the source renews it.
	Stale bool

	// HealthChecks are the cluster's own, else the default ones. If nil, the cluster is
	// not checked and passes through.
	HealthChecks []*corev3.HealthCheck

	// Names are the DNS names that hdsd resolved to make this EDS cluster; empty if it did not.
	Names string

	// IgnoreNew means that endpoints without a verdict get no traffic, as other addresses of
	// Names are healthy.
	IgnoreNew bool

	// Rejected is the reason why the cluster as a whole cannot be used; empty if it can. It
	// names no other cluster and no source: callers that may see this cluster may not see those.
	// Its readable parts are set all the same.
	Rejected string

	// File and Line are its place when it last changed; Line is 0 if the file has no
	// lines.
	File string
	Line int

	base *Cluster // as its source sent it; nil if that is this cluster
}

// EDS reports whether the cluster's endpoints come by EDS.
func (c *Cluster) EDS() bool { return envoy.IsEDS(c.Config) }

// Outside returns the name of the cluster outside hdsd: in its source, data planes, and the
// checked endpoints. The relay may have several versions of one name.
func (c *Cluster) Outside() string { return cmp.Or(c.Config.GetName(), c.Name) }

// Service returns the name of the source's assignment for the cluster.
func (c *Cluster) Service() string {
	if !c.EDS() {
		return c.ServiceName
	}
	return cmp.Or(envoy.AssignmentName(c.Config), c.Name)
}

// Message returns the cluster as the source sent it, with the endpoints that it lists. It
// must not be changed.
func (c *Cluster) Message() *clusterv3.Cluster {
	if c.Config == nil || c.EDS() || c.Assignment == nil {
		return c.Config
	}
	return c.MessageWith(c.Assignment.Message())
}

// MessageWith returns a cluster that lists its endpoints, with these instead. It shares its
// parts, and must not be changed.
func (c *Cluster) MessageWith(a *endpointv3.ClusterLoadAssignment) *clusterv3.Cluster {
	whole := &clusterv3.Cluster{}
	to, from := whole.ProtoReflect(), c.Config.ProtoReflect()
	from.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		to.Set(field, value)
		return true
	})
	to.SetUnknown(from.GetUnknown())
	whole.LoadAssignment = a
	return whole
}

// EndpointSource returns the name of the source of the endpoints.
func (c *Cluster) EndpointSource() string { return cmp.Or(c.AssignmentSource, c.Source) }

// Problem is a fault in a source's content, and how to fix it.
type Problem struct {
	File     string
	Line     int    // 0 if unknown
	Resource string // name of the faulty resource, if it has one
	Field    string // path in proto names
	Message  string
	Warning  bool // nothing is rejected because of it
}

// String formats p as "file:line: resource: field: message" without the unknown parts.
// Without a line but with a resource, it omits the file.
func (p Problem) String() string {
	message := p.Message
	if p.Field != "" {
		message = p.Field + ": " + message
	}
	switch {
	case p.Line > 0 && p.Resource != "":
		return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Resource, message)
	case p.Line > 0:
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, message)
	case p.Resource != "":
		return p.Resource + ": " + message
	case p.File != "":
		return p.File + ": " + message
	default:
		return message
	}
}
