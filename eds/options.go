package eds

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"hdsd/health"
	"hdsd/internal/endpointpb"
	"hdsd/internal/rest"
	"hdsd/internal/share"
)

// Options are the settings of a Server. Every field but Identifier has a default.
type Options struct {
	// Identifier is the control_plane.identifier of responses.
	Identifier string
	Log        zerolog.Logger
	// Metrics registers the server's metrics; nil: they are not exported.
	Metrics prometheus.Registerer
	// MaxNames is how many names one subscription may have; 50,000 by default. Twice
	// the largest number of resources so far counts where that is more, because a
	// client may ask for new names before it gives up those they replace. Names may
	// have 256 bytes each on average. Beyond it, a stream ends with
	// RESOURCE_EXHAUSTED.
	MaxNames int
	// Names has the names that clients ask for and that do not exist; nil: any number.
	// A stream that asks for too many ends with RESOURCE_EXHAUSTED, and one of whoever
	// has most when others need room.
	Names *share.Pool
	// MaxBodyBytes is the size of the largest REST request; 64 MiB by default.
	MaxBodyBytes int
	// Bodies bounds the bytes of REST requests; nil: nothing does.
	Bodies *rest.Budget
	// MaxResponseBytes is the size above which a response of changes is split; 1 MiB
	// by default. A single resource is never split.
	MaxResponseBytes int
	// FirstRequestTimeout is how long a stream may be open without a request before
	// it ends; 10 s by default.
	FirstRequestTimeout time.Duration
	// WriteTimeout is how long a write may wait for a client that does not read
	// before the stream ends; 12 s by default.
	WriteTimeout time.Duration
	// TTL is how long clients keep the resources of a type that they hear nothing more
	// of; for ever where there is none. Clients that understand a TTL get it, and three
	// heartbeats within it.
	TTL map[string]time.Duration
	// ZoneVariants gives each assignment a variant for each zone (see SetZoneHealth).
	// Clients choose one by ZoneParameter and RegionParameter.
	ZoneVariants bool
	// ZoneByLocality gives clients without these parameters the variant of their node's
	// region and zone, or of its zone where the node has no region.
	ZoneByLocality bool
	// FirstSyncs is how many clients are sent their first resources of a type at a
	// time; 64 by default. Others wait in the order in which they came.
	FirstSyncs int
	// Incomplete says that resources may exist that are not published yet. Until
	// Complete is called, no client is told that something does not exist.
	Incomplete bool
	// Authority makes xdstp://AUTHORITY/TYPE/NAME another name of each resource NAME, for
	// clients that ask for it; empty: there is none.
	Authority string

	// fewestShared is how many names a first request has at least that makes a group; 16 by
	// default.
	fewestShared int
}

// Assignment is one ClusterLoadAssignment to be published.
type Assignment struct {
	// Name is the published name, whatever the message says.
	Name string
	// Wire is the encoded message, as the source gave it. It must not change afterwards.
	Wire []byte
	// IDs lists, for each locality and lb endpoint, the endpoints whose verdicts
	// decide its health: the worst of them does. Without one, the lb endpoint is
	// published unchanged. They must not change afterwards.
	IDs [][][]health.EndpointID
	// Overruled ignores the source's health where verdicts decide. Otherwise the worse
	// of both is published.
	Overruled bool
}

// Message decodes the assignment, anew each time.
func (a *Assignment) Message() *endpointv3.ClusterLoadAssignment { return endpointpb.Decode(a.Wire) }

// Cluster is one Cluster to be published.
type Cluster struct {
	// Name is hdsd's own for the cluster, by which it is removed. That in Message is what
	// data planes call it.
	Name string
	// Message is the form to publish (see PublishCluster). It must not change
	// afterwards.
	Message *clusterv3.Cluster
	// Checked says that hdsd removed the health checks, so that the cluster's health
	// is in its assignment alone.
	Checked bool
}

// Update is a change of what is published.
type Update struct {
	Assignments        []Assignment
	RemovedAssignments []string
	Clusters           []Cluster
	RemovedClusters    []string
}

// Health is the health to publish of one endpoint.
type Health struct {
	ID     health.EndpointID
	Status health.Status
}
