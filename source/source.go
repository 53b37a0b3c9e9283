package source

import (
	"cmp"
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// Set is all that one source says at one moment. It is not changed once handed
// on; a cluster that did not change since the Set before keeps its pointer.
type Set struct {
	Source   string
	Clusters []*Cluster // by Name, which is unique
	Problems []Problem

	// Awaited tells that the source has not answered since hdsd's start and
	// is waited for, Unread that it is no longer waited for. The clusters here
	// are then what it said before the start, if that is known: that one is
	// not here does not mean that there is none.
	Awaited, Unread bool
}

// Answered tells whether a source has said what there is.
func (s *Set) Answered() bool { return s != nil && !s.Awaited && !s.Unread }

// Cluster is one cluster with its endpoints.
type Cluster struct {
	Source string // name of the source it comes from

	// Name is what everything calls the cluster. ServiceName is the name that
	// its endpoints are published under: an EDS cluster's service_name, else
	// Name, whatever the Assignment calls itself.
	Name, ServiceName string

	// Config is the cluster as the source gave it: nil for a lone
	// ClusterLoadAssignment, and for a cluster that could not be read. Lone
	// tells the two apart where the assignment could not be read either.
	Config *clusterv3.Cluster
	Lone   bool

	// Assignment is the endpoints as the source gave them, unknown fields
	// included; nil where there are none, as for an EDS cluster whose
	// ClusterLoadAssignment is missing. AssignmentSource is the name of the
	// source that they come from, where that is another than Source.
	Assignment       *endpointv3.ClusterLoadAssignment
	AssignmentSource string

	// HealthChecks are the cluster's own, else the default ones, else nil:
	// then it is not checked and passes through.
	HealthChecks []*corev3.HealthCheck

	// Rejected says why the cluster as a whole cannot be used; empty if it can.
	// What could be read of it is there all the same.
	Rejected string

	// File and Line are where it was when it last changed; Line is 0 where
	// the file has no lines.
	File string
	Line int

	base *Cluster // as its source gave it; nil where that is this
}

// EDS tells whether the cluster's endpoints come apart from it.
func (c *Cluster) EDS() bool {
	kind, ok := c.Config.GetClusterDiscoveryType().(*clusterv3.Cluster_Type)
	return ok && kind.Type == clusterv3.Cluster_EDS
}

// EndpointSource is the name of the source that the endpoints come from.
func (c *Cluster) EndpointSource() string { return cmp.Or(c.AssignmentSource, c.Source) }

// Problem is something wrong with what a source says, and how to put it right.
type Problem struct {
	File     string
	Line     int    // 0 where there is none
	Resource string // name of what is wrong, where it has one
	Field    string // path in proto names
	Message  string
	Warning  bool // nothing is set aside because of it
}

// String gives "file:line: resource: field: message", what is not known left
// out, and the file where there is no line but a resource.
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
