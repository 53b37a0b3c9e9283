package publish

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/envoy"
	"hdsd/health"
)

// Assignment is one ClusterLoadAssignment to be published.
type Assignment struct {
	// Name is the published name, regardless of the message.
	Name string
	// Wire is the encoded message of the source. It must not change afterwards.
	Wire []byte
	// IDs lists, for each locality and lb endpoint, the endpoints whose verdicts
	// decide its health: the worst of them does. Without one, the lb endpoint is
	// published unchanged. They must not change afterwards.
	IDs [][][]health.EndpointID
	// Overruled ignores the source's health where verdicts decide. Otherwise the worse
	// of both is published.
	Overruled bool
}

// Deciding returns the endpoints whose verdicts decide the health of an lb endpoint; none: the
// source alone does.
func (a *Assignment) Deciding(locality, endpoint int) []health.EndpointID {
	if locality >= len(a.IDs) || endpoint >= len(a.IDs[locality]) {
		return nil
	}
	return a.IDs[locality][endpoint]
}

// Message decodes the assignment, anew each time.
func (a *Assignment) Message() *endpointv3.ClusterLoadAssignment {
	return envoy.DecodeAssignment(a.Wire)
}

// Cluster is one Cluster to be published.
type Cluster struct {
	// Name is hdsd's own name for the cluster, by which it is removed. Message has the name for
	// data planes.
	Name string
	// Message is the form to publish (see TakeOver). It must not change
	// afterwards.
	Message *clusterv3.Cluster
	// Checked means that hdsd removed the health checks, so that the cluster's health is in its
	// assignment alone.
	Checked bool
}

// Change is one change for data planes. The parts are applied in the order of the fields.
type Change struct {
	Health    []Health // set before Update, so that a reused id never shows the health of its predecessor
	Update    Update
	Withdrawn []Health // set after Update, when no assignment refers to it any more
	Zones     []ZoneHealth
}

// IsEmpty reports whether the change has no parts.
func (c *Change) IsEmpty() bool {
	return len(c.Health)+len(c.Withdrawn)+len(c.Zones) == 0 && c.Update.IsEmpty()
}

// ZoneHealth changes the health published to the data planes of one zone only.
type ZoneHealth struct {
	Zone  health.Locality
	Set   []Health
	Unset []health.EndpointID // now as for all zones
}

// Update is a change of published resources.
type Update struct {
	Assignments        []Assignment
	RemovedAssignments []string
	Clusters           []Cluster
	RemovedClusters    []string
}

// IsEmpty reports whether the update changes nothing.
func (u *Update) IsEmpty() bool {
	return len(u.Assignments)+len(u.RemovedAssignments)+len(u.Clusters)+len(u.RemovedClusters) == 0
}

// Health is the health to publish of one endpoint.
type Health struct {
	ID     health.EndpointID
	Status health.Status
}
