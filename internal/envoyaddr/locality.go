package envoyaddr

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/health"
)

// names are what a locality has in every message: *corev3.Locality is one.
type names interface {
	GetRegion() string
	GetZone() string
	GetSubZone() string
}

// Locality gives the locality of Envoy's message, or of one that has the same
// names.
func Locality(l names) health.Locality {
	return health.Locality{Region: l.GetRegion(), Zone: l.GetZone(), SubZone: l.GetSubZone()}
}

// LocalityMessage gives the message of a locality.
func LocalityMessage(l health.Locality) *corev3.Locality {
	return &corev3.Locality{Region: l.Region, Zone: l.Zone, SubZone: l.SubZone}
}
