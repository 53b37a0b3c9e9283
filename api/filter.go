package api

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/health"
)

// filterOf reads the filters that several questions have.
func filterOf(r interface {
	GetUnhealthy() bool
	GetLocality() string
}) (health.Filter, error) {
	parts := strings.Split(r.GetLocality(), "/")
	if len(parts) > 3 {
		return health.Filter{}, status.Errorf(codes.InvalidArgument, "locality: %q has more than three parts: want REGION, REGION/ZONE or REGION/ZONE/SUB-ZONE", r.GetLocality())
	}
	parts = append(parts, "", "")
	return health.Filter{Unhealthy: r.GetUnhealthy(), Locality: health.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}}, nil
}

// questionOf adds a filter to the query that a page token is bound to.
func questionOf(f health.Filter) string {
	if f.Any() {
		return ""
	}
	return fmt.Sprintf(" %t %q", f.Unhealthy, f.Locality)
}
