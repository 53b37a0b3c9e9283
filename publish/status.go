package publish

import (
	"math"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/health"
)

// Statuses are verdicts by the ids of endpoints. A missing one is Unknown.
type Statuses []health.Status

// Get returns the verdict on an endpoint.
func (s Statuses) Get(id health.EndpointID) health.Status {
	if int(id) >= len(s) {
		return health.Unknown
	}
	return s[id]
}

// Set sets the verdict on an endpoint, and reports whether it changes.
func (s *Statuses) Set(h Health) (changed bool) {
	if s.Get(h.ID) == h.Status {
		return false
	}
	if missing := int(h.ID) + 1 - len(*s); missing > 0 {
		*s = append(*s, make(Statuses, missing)...)
	}
	(*s)[h.ID] = h.Status
	return true
}

// Worst returns the worst verdict on endpoints, of which there is at least one.
func Worst(ids []health.EndpointID, statusOf func(health.EndpointID) health.Status) health.Status {
	worst := statusOf(ids[0])
	for _, id := range ids[1:] {
		worst = health.Worse(worst, statusOf(id))
	}
	return worst
}

// Combine returns the health to publish of a verdict and the source's health: the worse of both.
// Unknown does not count.
func Combine(verdict, source health.Status) health.Status {
	switch {
	case source == health.Unknown:
		return verdict
	case verdict == health.Unknown:
		return source
	default:
		return health.Worse(verdict, source)
	}
}

// SourceStatus returns the source's health of an endpoint. An unknown value is Unknown, as it is
// to Envoy.
func SourceStatus(e *endpointv3.LbEndpoint) health.Status {
	return Status(int64(e.GetHealthStatus()))
}

// Status converts a health_status. An unknown value is Unknown, as it is to Envoy.
func Status(value int64) health.Status {
	if value < 0 || value > math.MaxUint8 || !health.Status(value).Valid() {
		return health.Unknown
	}
	return health.Status(value)
}
