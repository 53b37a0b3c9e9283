package envoy

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/health"
)

// names are the fields of a locality in every message: *corev3.Locality has them.
type names interface {
	GetRegion() string
	GetZone() string
	GetSubZone() string
}

// Locality converts Envoy's message of a locality, or any with the same fields.
func Locality(l names) health.Locality {
	return health.Locality{Region: l.GetRegion(), Zone: l.GetZone(), SubZone: l.GetSubZone()}
}

// LocalityMessage converts a locality to Envoy's message.
func LocalityMessage(l health.Locality) *corev3.Locality {
	return &corev3.Locality{Region: l.Region, Zone: l.Zone, SubZone: l.SubZone}
}
