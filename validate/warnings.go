package validate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hdsd/catalog"
	"hdsd/envoy"
	"hdsd/envoy/specifier"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/internal/suggest"
	"hdsd/publish"
	"hdsd/source"
)

// warn reports a possible mistake that hdsd accepts.
func (e *examiner) warn(cluster *source.Cluster, format string, args ...any) {
	e.add(source.Problem{File: cluster.File, Line: cluster.Line, Resource: cluster.Name, Message: fmt.Sprintf(format, args...), Warning: true})
}

// warnOfResolution reports a cluster whose endpoints Envoys resolve themselves,
// so that they cannot use hdsd's verdicts.
func (e *examiner) warnOfResolution(k *catalog.Cluster) {
	if k.Source.Config != nil && !publish.CanTakeOver(k.Source.Message()) && k.IsChecked() {
		e.warn(k.Source, "Envoys find its endpoints themselves, so they get it unchanged and run its own health checks; "+
			"make it STATIC or EDS, with IP addresses, so that they use hdsd's verdicts")
	}
}

// warnOfLoadReports reports a cluster whose clients would send load reports to hdsd: "self" is
// the server that sent the cluster, and without a relay hdsd takes none.
func (e *examiner) warnOfLoadReports(k *catalog.Cluster) {
	if k.Source.Config.GetLrsServer().GetSelf() != nil {
		e.warn(k.Source, "lrs_server.self: clients that get the cluster from hdsd send their load reports to hdsd, which takes none without a relay: "+
			"nobody gets them; put hdsd in between as a relay, or remove the field")
	}
}

// mostAtOnce is the rate of checks per second that a busy Envoy stands in a burst.
const mostAtOnce = 1000

// warnOfBursts reports a cluster whose bursts of checks are too much for a busy checker, since
// its source spreads first ones over less time than hdsd would.
func (e *examiner) warnOfBursts(k *catalog.Cluster) {
	for _, check := range k.Source.HealthChecks {
		burst := int64(len(k.Hashes)) * k.Burst() / 1000
		if check.GetInitialJitter() != nil && check.GetInitialJitter().AsDuration() < check.GetInterval().AsDuration() && burst > mostAtOnce && k.Burst() > 2*k.Rate {
			e.warn(k.Source, "health_checks.initial_jitter: a checker that has all %d endpoints probes them in bursts of %d a second, in each interval: "+
				"a busy Envoy then finds answers too late; leave it out, or give it the interval", len(k.Hashes), burst)
			return
		}
	}
}

// countProbes reports endpoints that hdsd would not check, since their address would get too
// many probes. Clusters come in the order of their names, as at a start of hdsd.
func (e *examiner) countProbes(k *catalog.Cluster) {
	e.targets.Replace(nil, k)
	waiting := slices.DeleteFunc(slices.Clone(k.Endpoints), func(endpoint catalog.Endpoint) bool { return !e.targets.Waits(endpoint.Hash()) })
	if len(waiting) > 0 {
		e.addExclusion(k.Source, specifier.Exclusion{Reason: fmt.Sprintf("%d of its endpoints are not checked, %s first: their addresses would get more than %d probes a second, "+
			"by all clusters and checkers: check them less often, or raise checkers.probe_targets.max_probes_per_second", len(waiting), waiting[0].Address(), e.rules.MaxProbes)})
	}
}

// countNeeds counts abilities that a checker may lack. IPv6 is unknown to it.
func (e *examiner) countNeeds(k *catalog.Cluster) {
	if k.Checked == nil {
		return
	}
	for _, need := range k.Checked.Needs {
		if need != health.HTTP && need != health.TCP {
			e.found.Needs[need]++
		}
	}
	if k.Reach == nil && slices.ContainsFunc(k.Checked.Endpoints, func(endpoint specifier.Endpoint) bool { return strings.HasPrefix(endpoint.Address, "[") }) {
		e.sixth++
	}
}

// findUnusedAssignments reports assignments that belong to no cluster, if a cluster waits for
// one of a similar name.
func (e *examiner) findUnusedAssignments(clusters []*source.Cluster) {
	var missing []string
	for _, c := range clusters {
		if c.EDS() && c.Assignment == nil {
			missing = append(missing, c.ServiceName)
		}
	}
	for _, c := range clusters {
		if c.Config != nil || c.Assignment == nil {
			continue
		}
		if meant := suggest.DidYouMean(c.Name, missing); meant != "" {
			e.warn(c, "no Cluster uses this ClusterLoadAssignment, so it is a cluster of its own%s", meant)
		}
	}
}

// Effects of a repeated address.
const (
	unitedTwins   = "is in its locality more than once%s: hdsd checks it once, and publishes it once with the sum of the weights; remove the duplicates"
	listedTwins   = "is in its locality more than once%s: an Envoy sends it the traffic of several endpoints; remove the duplicates, or give one the sum of the weights"
	ignoredTwins  = "is in its locality more than once%s: hdsd checks it once, and an Envoy takes only the first; remove the duplicates"
	scatteredTwin = "is in more than one locality or priority%s: hdsd publishes the cluster by EDS, of which an Envoy takes only the first, " +
		"where it takes all of a STATIC cluster; give each an address of its own"
)

// findDuplicates reports repeated addresses of an assignment.
func (e *examiner) findDuplicates(k *catalog.Cluster) {
	cluster := k.Source
	effect := ignoredTwins
	switch {
	case cluster.Names != "" || k.ByEDS() && !cluster.EDS():
		effect = unitedTwins
	case cluster.Config != nil && !cluster.EDS():
		effect = listedTwins
	}
	place := e.places[cluster.Assignment]
	first, elsewhere := map[twin]int{}, map[string]int{} // lines
	for i, group := range cluster.Assignment.Message().GetEndpoints() {
		for j, lb := range group.GetLbEndpoints() {
			key := twin{group.GetPriority(), envoy.Locality(group.GetLocality()), envoy.AddressOf(lb, i, j)}
			line := place.Line(i, j)
			before, repeated := first[key]
			text := effect
			if !repeated {
				first[key] = line
				before, repeated = elsewhere[key.address]
				text, repeated = scatteredTwin, repeated && effect == unitedTwins
			}
			if _, ok := elsewhere[key.address]; !ok {
				elsewhere[key.address] = line
			}
			if !repeated {
				continue
			}
			start := ""
			if before > 0 {
				start = fmt.Sprintf(", first at line %d", before)
			}
			e.add(source.Problem{
				File: cmp.Or(place.File, cluster.File), Line: cmp.Or(line, cluster.Line), Resource: cluster.Name, Warning: true,
				Message: fmt.Sprintf("endpoint %s: "+text, key.address, start),
			})
		}
	}
}

// twin is common to the endpoints of a locality with one address.
type twin struct {
	priority uint32
	locality health.Locality
	address  string
}

// findUnusedPolicies reports policies that match no cluster, not even a rejected one. A file of which nothing can be
// read may have any cluster, so nothing is reported then.
func (e *examiner) findUnusedPolicies(policies []*configv1.Policy, merged *source.Catalog) {
	names := make([]string, 0, len(merged.Clusters))
	for _, c := range merged.Clusters {
		names = append(names, c.Name)
	}
	for _, p := range merged.Problems {
		if p.Resource == "" && !p.Warning {
			return
		}
		names = append(names, p.Resource)
	}
	for i, policy := range policies {
		glob := policy.GetClusterNameGlob()
		if !slices.ContainsFunc(names, func(name string) bool { return source.Match(glob, name) }) {
			e.add(source.Problem{
				Field: fmt.Sprintf("policies[%d].cluster_name_glob", i), Warning: true,
				Message: fmt.Sprintf("%q matches no cluster of the sources, so the policy has no effect", glob),
			})
		}
	}
}
