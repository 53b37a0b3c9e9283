package coordinator

import (
	"cmp"
	"fmt"
	"slices"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/internal/envoyaddr"
	"hdsd/internal/yamlpb"
	"hdsd/source"
)

// warn tells of what a start takes as it is, though it may not be meant so.
func (e *examiner) warn(from *source.Cluster, format string, args ...any) {
	e.problem(source.Problem{File: from.File, Line: from.Line, Resource: from.Name, Message: fmt.Sprintf(format, args...), Warning: true})
}

// strays finds assignments that belong to no cluster, under names much like
// those that clusters wait for.
func (e *examiner) strays(all []*source.Cluster) {
	var missing []string
	for _, c := range all {
		if c.EDS() && c.Assignment == nil {
			missing = append(missing, c.ServiceName)
		}
	}
	for _, c := range all {
		if c.Config != nil || c.Assignment == nil {
			continue
		}
		if meant := yamlpb.DidYouMean(c.Name, missing); meant != "" {
			e.warn(c, "is a ClusterLoadAssignment that no Cluster takes, and so a cluster of its own%s", meant)
		}
	}
}

// twins finds endpoints that a locality has more than once.
func (e *examiner) twins(from *source.Cluster) {
	place := e.places[from.Assignment]
	first := map[health.Endpoint]int{} // lines
	for i, group := range from.Assignment.GetEndpoints() {
		for j, lb := range group.GetLbEndpoints() {
			key := health.Endpoint{Cluster: from.Name, Locality: envoyaddr.Locality(group.GetLocality()), Address: envoyaddr.AddressOf(lb, i, j)}
			line := place.Line(i, j)
			before, twice := first[key]
			if !twice {
				first[key] = line
				continue
			}
			at := ""
			if before > 0 {
				at = fmt.Sprintf(", first at line %d", before)
			}
			e.problem(source.Problem{
				File: cmp.Or(place.File, from.File), Line: cmp.Or(line, from.Line), Resource: from.Name, Warning: true,
				Message: fmt.Sprintf("endpoint %s: is in its locality more than once%s: they are one endpoint; remove the others", key.Address, at),
			})
		}
	}
}

// policies finds those that are for no cluster.
func (e *examiner) policies(all []*configv1.Policy, clusters []*source.Cluster) {
	for i, policy := range all {
		glob := policy.GetClusterNameGlob()
		if !slices.ContainsFunc(clusters, func(c *source.Cluster) bool { return source.Match(glob, c.Name) }) {
			e.problem(source.Problem{
				Field: fmt.Sprintf("policies[%d].cluster_name_glob", i), Warning: true,
				Message: fmt.Sprintf("%q matches no cluster of the sources: the policy does nothing", glob),
			})
		}
	}
}
