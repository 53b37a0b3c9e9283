package validate

import (
	"cmp"
	"fmt"
	"slices"

	"hdsd/coordinator/catalog"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/internal/envoyaddr"
	"hdsd/internal/suggest"
	"hdsd/source"
)

// warn reports what hdsd accepts although it may be a mistake.
func (e *examiner) warn(from *source.Cluster, format string, args ...any) {
	e.add(source.Problem{File: from.File, Line: from.Line, Resource: from.Name, Message: fmt.Sprintf(format, args...), Warning: true})
}

// warnOfResolution reports a cluster whose endpoints Envoys resolve themselves,
// so that they cannot use hdsd's verdicts.
func (e *examiner) warnOfResolution(k *catalog.Cluster) {
	if k.Source.Config != nil && !eds.Publishable(k.Source.Message()) && k.IsChecked() {
		e.warn(k.Source, "Envoys find its endpoints themselves, so they get it unchanged and run its own health checks; "+
			"make it STATIC or EDS, with IP addresses, so that they use hdsd's verdicts")
	}
}

// warnOfLoadReports reports a cluster whose clients would send load reports to hdsd: "self" is
// whoever gives them the cluster, and without a relay hdsd takes none.
func (e *examiner) warnOfLoadReports(k *catalog.Cluster) {
	if k.Source.Config.GetLrsServer().GetSelf() != nil {
		e.warn(k.Source, "lrs_server.self: clients that get the cluster from hdsd send their load reports to hdsd, which takes none without a relay: "+
			"nobody gets them; put hdsd in between as a relay, or remove the field")
	}
}

// countNeeds counts abilities that an Envoy may lack.
func (e *examiner) countNeeds(k *catalog.Cluster) {
	if k.Checked == nil {
		return
	}
	for _, need := range k.Checked.Needs {
		if need != health.HTTP && need != health.TCP {
			e.found.Needs[need]++
		}
	}
}

// findUnusedAssignments reports assignments that belong to no cluster, if a
// cluster waits for one of a similar name.
func (e *examiner) findUnusedAssignments(all []*source.Cluster) {
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
		if meant := suggest.DidYouMean(c.Name, missing); meant != "" {
			e.warn(c, "no Cluster uses this ClusterLoadAssignment, so it is a cluster of its own%s", meant)
		}
	}
}

// findDuplicates reports endpoints that a locality has more than once.
func (e *examiner) findDuplicates(from *source.Cluster) {
	place := e.places[from.Assignment]
	first := map[health.Endpoint]int{} // lines
	for i, group := range from.Assignment.Message().GetEndpoints() {
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
			e.add(source.Problem{
				File: cmp.Or(place.File, from.File), Line: cmp.Or(line, from.Line), Resource: from.Name, Warning: true,
				Message: fmt.Sprintf("endpoint %s: is in its locality more than once%s: hdsd checks it once; remove the duplicates", key.Address, at),
			})
		}
	}
}

// findUnusedPolicies reports policies that match no cluster.
func (e *examiner) findUnusedPolicies(all []*configv1.Policy, clusters []*source.Cluster) {
	for i, policy := range all {
		glob := policy.GetClusterNameGlob()
		if !slices.ContainsFunc(clusters, func(c *source.Cluster) bool { return source.Match(glob, c.Name) }) {
			e.add(source.Problem{
				Field: fmt.Sprintf("policies[%d].cluster_name_glob", i), Warning: true,
				Message: fmt.Sprintf("%q matches no cluster of the sources, so the policy has no effect", glob),
			})
		}
	}
}
