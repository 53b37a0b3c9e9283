package eds

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"hdsd/health"
)

// Options say how a Server works. Every field but Identifier has a default.
type Options struct {
	// Identifier is what clients are told in control_plane.identifier.
	Identifier string
	Log        zerolog.Logger
	// Metrics takes the server's metrics; nil: none are kept for anyone.
	Metrics prometheus.Registerer
	// MaxNames is how many names one subscription may have, 50,000 by default, or
	// twice as many as there ever were resources, where that is more: what replaces
	// others may be asked for before those are given up. They may have 256 bytes
	// each on average. Beyond it, a stream ends with RESOURCE_EXHAUSTED.
	MaxNames int
	// MaxBodyBytes is the size of the largest request taken in REST, 64 MiB by
	// default.
	MaxBodyBytes int
	// MaxResponseBytes is the size past which a response of changes is split,
	// 1 MiB by default; one resource is never split.
	MaxResponseBytes int
	// FirstRequestTimeout is how long a stream may be open without a request;
	// 30 s by default. It ends then.
	FirstRequestTimeout time.Duration
	// WriteTimeout is how long a client may leave a response unread while
	// there is no room to write it; 30 s by default. The stream ends then.
	WriteTimeout time.Duration
	// TTL says for how long clients keep the resources of a type when they hear
	// nothing more of them; where there is none, for ever. It is sent to clients
	// that heed it, which are sent heartbeats three times as often.
	TTL map[string]time.Duration
	// ZoneVariants says that an assignment has a variant for each zone (see
	// SetZoneHealth), which clients choose by ZoneParameter and RegionParameter.
	ZoneVariants bool
	// ZoneByLocality gives clients that give no parameter the variant of their
	// node's region and zone, or of its zone where it names no region.
	ZoneByLocality bool
	// FirstSyncs is how many clients are sent their first resources of a type at
	// once, 64 by default; others wait in the order in which they came.
	FirstSyncs int
	// Incomplete says that not everything is published yet that there is: until
	// Complete is called, nobody is told that something does not exist.
	Incomplete bool
}

// Assignment is one ClusterLoadAssignment to be published.
type Assignment struct {
	// Name is what it is published as, whatever the message says.
	Name string
	// Message is as the source gave it. It must not change any more.
	Message *endpointv3.ClusterLoadAssignment
	// IDs says, per locality and lb endpoint, which verdicts decide its
	// health: the worst of them. Where there are none, the endpoint passes
	// through as it is. They must not change any more.
	IDs [][][]health.EndpointID
	// Overruled says that where verdicts decide, what the source says of
	// health counts for nothing; else the worse of both is published.
	Overruled bool
}

// Cluster is one Cluster to be published.
type Cluster struct {
	// Message is as it shall go out (see PublishCluster). It must not change any more.
	Message *clusterv3.Cluster
	// Checked says that it went out of hdsd without health checks, so that its
	// health is in its assignment alone.
	Checked bool
}

// Update is a change of what is published.
type Update struct {
	Assignments        []Assignment
	RemovedAssignments []string
	Clusters           []Cluster
	RemovedClusters    []string
}

// Health is what to publish of one endpoint.
type Health struct {
	ID     health.EndpointID
	Status health.Status
}
