package feed

import (
	"github.com/rs/zerolog"

	"hdsd/health"
)

// ClusterName is the name of a cluster in a log line: hdsd's own, and the outside one.
type ClusterName struct{ Own, Outside string }

// MarshalZerologObject implements zerolog.LogObjectMarshaler.
func (n ClusterName) MarshalZerologObject(e *zerolog.Event) {
	e.Str("cluster", n.Outside)
	if version := health.VersionOf(n.Own, n.Outside); version != "" {
		e.Str("cluster_version", version)
	}
}
