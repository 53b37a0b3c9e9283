package eds

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"hdsd/internal/rest"
	"hdsd/peer/limit"
)

// Options are the settings of a Server. Every field but Identifier has a default.
type Options struct {
	// Identifier is the control_plane.identifier of responses.
	Identifier string
	Log        zerolog.Logger
	// Metrics registers the server's metrics; nil: they are not exported.
	Metrics prometheus.Registerer
	// MaxNames bounds the names of one subscription; 50,000 by default. If that is more, twice
	// the largest number of resources so far counts, because a client may request new names
	// before it gives up those they replace. Names may have 256 bytes each on average. Beyond
	// it, a stream ends with RESOURCE_EXHAUSTED.
	MaxNames int
	// Names bounds the requested names of missing resources; nil: unbounded. A stream beyond its
	// limit ends with RESOURCE_EXHAUSTED, and so does one of the caller with most names when
	// others need room.
	Names *limit.Pool
	// MaxBodyBytes is the size of the largest REST request; 64 MiB by default.
	MaxBodyBytes int
	// Bodies bounds the bytes of REST requests; nil: unbounded.
	Bodies *rest.Budget
	// MaxResponseBytes is the size above which a response of changes is split; 1 MiB
	// by default. A single resource is never split.
	MaxResponseBytes int
	// FirstRequestTimeout bounds the wait for a stream's first request; 10 s by default.
	FirstRequestTimeout time.Duration
	// WriteTimeout bounds the wait of a write for a client that does not read, after which the
	// stream ends; 12 s by default.
	WriteTimeout time.Duration
	// TTL is how long clients keep the resources of a type without news; for ever without a TTL.
	// Clients that understand a TTL get it, and three heartbeats within it.
	TTL map[string]time.Duration
	// ZoneVariants returns each assignment a variant for each zone (see SetZoneHealth).
	// Clients choose one by ZoneParameter and RegionParameter.
	ZoneVariants bool
	// ZoneByLocality gives clients without these parameters the variant of their node's region
	// and zone, or of its zone if the node has no region.
	ZoneByLocality bool
	// FirstSyncs bounds the clients that get their first resources of a type at a time; 64 by
	// default. Others wait in order of arrival.
	FirstSyncs int
	// Incomplete means that resources may exist that are not published yet. Until Complete is
	// called, no client is told that something does not exist.
	Incomplete bool
	// Authority makes xdstp://AUTHORITY/TYPE/NAME another name of each resource NAME, for
	// clients that request it; empty: there is none.
	Authority string

	// fewestShared is the least number of names in a first request that makes a group; 16 by
	// default.
	fewestShared int
}
