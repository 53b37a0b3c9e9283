package validate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/catalog"
	"hdsd/catalog/targets"
	"hdsd/config"
	"hdsd/envoy"
	"hdsd/envoy/specifier"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/source"
	"hdsd/source/file"
	"hdsd/source/names"
)

// Findings are the results of Examine.
type Findings struct {
	Clusters, Endpoints int
	Checked             int                    // of the endpoints
	Problems            []source.Problem       // one without a file is in the configuration
	Needs               map[health.Ability]int // clusters that only checkers with an ability can check
	Notes               []string               // worth knowing, with nothing to put right
	Unread              []string               // names of management servers that were not asked
	GRPC                []source.Problem       // content that gRPC's own xDS clients refuse, or read differently
}

// Examine reads the file sources as a start would. Unless node is nil, it also asks the
// management servers once, as a start of hdsd as that node would: that takes as long as their
// initial_fetch_timeout, 30 s at most. It reports what would not be checked, and the reason, by
// file and line. Of a configuration with problems it reads the valid part.
func Examine(ctx context.Context, c *configv1.Config, node *corev3.Node) Findings {
	e := newExaminer(c)
	var sets []*source.Set
	for _, src := range c.GetSources() {
		sets = append(sets, e.read(src))
	}
	if node != nil {
		e.ask(ctx, c, node, sets)
	} else {
		e.skip(c)
	}
	for i, src := range c.GetSources() {
		if src.GetResolveNames() && sets[i] != nil {
			sets[i] = e.withAddresses(sets[i])
		}
	}
	merged := source.Merge(nil, sets, e.rules.DefaultHealthChecks)
	e.add(merged.Problems...)
	for _, cluster := range merged.Clusters {
		e.examineCluster(cluster)
	}
	if e.sixth > 0 {
		e.found.Notes = append(e.found.Notes, fmt.Sprintf("clusters with IPv6 endpoints: %d; a checker without IPv6 finds these endpoints UNHEALTHY, and hdsd cannot tell: "+
			"if some of yours have none, name those that have it in policies[].checkers", e.sixth))
	}
	if len(e.found.Unread) == 0 && c.GetRelay() == nil { // a management server may have what the files lack
		e.findUnusedAssignments(merged.Clusters)
		e.findUnusedPolicies(c.GetPolicies(), merged)
	}
	slices.SortStableFunc(e.found.Problems, func(a, b source.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return e.found
}

// examiner collects findings.
type examiner struct {
	rules      *catalog.Rules
	places     file.Places
	unreadable map[endpointPlace]bool                                   // endpoints with a reading problem, which may cause others
	named      map[*source.Assignment]*endpointv3.ClusterLoadAssignment // original of assignments whose names are replaced by addresses

	badFields map[string][]string // by cluster: the fields in which its source found problems

	targets *targets.Table // the probes by address of the clusters so far

	maxInCluster int // endpoints; 0: any number
	sixth        int // clusters with IPv6 endpoints, for which no policy selects checkers
	found        Findings
}

func newExaminer(c *configv1.Config) *examiner {
	e := &examiner{
		rules: catalog.NewRules(c), places: file.Places{}, maxInCluster: int(c.GetLimits().GetMaxClusterEndpoints()),
		targets: targets.New(), unreadable: map[endpointPlace]bool{}, badFields: map[string][]string{}, named: map[*source.Assignment]*endpointv3.ClusterLoadAssignment{},
		found: Findings{Needs: map[health.Ability]int{}},
	}
	e.rules.Options.Verbose = true
	e.targets.SetLimit(e.rules.MaxProbes, slices.Values([]*catalog.Cluster(nil)))
	return e
}

// endpointPlace is a cluster and the place of an endpoint in its assignment.
type endpointPlace struct{ cluster, field string }

// resourcePath matches the part of a field's path that leads to its resource.
var resourcePath = regexp.MustCompile(`^(resources|static_resources\.clusters)(\[\d+\])?(\.resource)?\.`)

var endpointPath = regexp.MustCompile(`endpoints\[\d+\]\.lb_endpoints\[\d+\]`)

func (e *examiner) add(problems ...source.Problem) {
	e.found.Problems = append(e.found.Problems, problems...)
}

// read reads the valid part of a source.
func (e *examiner) read(src *configv1.Source) *source.Set {
	path, watched := config.PathOf(src)
	if path == "" {
		return nil // a management server, or reported by package config
	}
	if err := file.CheckWatchedDirectory(watched); err != nil {
		e.add(source.Problem{File: path, Resource: src.GetName(), Message: err.Error()})
	}
	set, places := file.Examine(file.Options{Name: src.GetName(), Path: path, MaxClusterEndpoints: e.maxInCluster})
	maps.Copy(e.places, places)
	for _, p := range set.Problems {
		e.unreadable[endpointPlace{p.Resource, endpointPath.FindString(p.Field)}] = true
		e.badFields[p.Resource] = append(e.badFields[p.Resource], resourcePath.ReplaceAllString(p.Field, ""))
	}
	return set
}

// skip records the management servers that are not asked.
func (e *examiner) skip(c *configv1.Config) {
	for _, src := range c.GetSources() {
		if src.GetConfigSource().GetApiConfigSource() != nil {
			e.found.Unread = append(e.found.Unread, src.GetName())
		}
	}
	if c.GetRelay() != nil {
		e.found.Unread = append(e.found.Unread, Relay)
	}
}

// withAddresses replaces the names that hdsd would resolve by addresses. A name may be right
// although it cannot be resolved here.
func (e *examiner) withAddresses(set *source.Set) *source.Set {
	resolved, originals := names.Example(set)
	for assignment, original := range originals {
		e.places[assignment] = e.places[original]
		e.named[assignment] = original.Message()
	}
	return resolved
}

func (e *examiner) examineCluster(cluster *source.Cluster) {
	k := catalog.Prepare(cluster, e.rules)
	e.found.Clusters++
	e.found.Endpoints += len(k.Endpoints)
	if k.Checked != nil {
		e.found.Checked += len(k.Checked.Endpoints)
	}
	e.findDuplicates(k)
	e.addGRPC(k)
	e.warnOfResolution(k)
	e.warnOfLosses(k)
	e.warnOfLoadReports(k)
	e.warnOfBursts(k)
	if raised := k.Raised(); raised != "" {
		e.warn(cluster, "%s", raised)
	}
	excluded := cluster.Rejected != "" // the source reports why
	addresses := map[string]bool{}
	if !excluded {
		for _, q := range k.Exclusions() {
			e.addExclusion(cluster, q)
			excluded = excluded || q.Address == ""
			addresses[q.Address] = true
		}
		e.countNeeds(k)
		e.countProbes(k)
	}
	if e.meantToBeChecked(cluster) && (excluded || k.Checked == nil) {
		e.examineExcluded(cluster, addresses)
	}
}

// examineExcluded looks for further problems in a cluster that is excluded as a whole, apart
// from endpoints with known problems.
func (e *examiner) examineExcluded(cluster *source.Cluster, addresses map[string]bool) {
	if cluster.Rejected != "" && len(cluster.HealthChecks) > 0 {
		e.reviewCluster(cluster)
	}
	for _, q := range specifier.ReviewEndpoints(cluster.Name, cluster.Assignment.Message(), e.rules.Options) {
		if !addresses[q.Address] && !e.unreadable[endpointPlace{cluster.Name, fmt.Sprintf("endpoints[%d].lb_endpoints[%d]", q.Locality, q.Index)}] {
			e.addExclusion(cluster, q)
		}
	}
}

// reviewCluster reports problems of a cluster in fields without a problem reported by its
// source.
func (e *examiner) reviewCluster(cluster *source.Cluster) {
	for _, wrong := range specifier.ReviewCluster(cluster.Name, cluster.Config, cluster.Assignment.Message(), cluster.HealthChecks, e.rules.Options) {
		field, _, _ := strings.Cut(wrong, ": ")
		if !slices.ContainsFunc(e.badFields[cluster.Name], func(badField string) bool {
			return strings.HasPrefix(badField+".", field+".") || strings.HasPrefix(field+".", badField+".")
		}) {
			e.addExclusion(cluster, specifier.Exclusion{Reason: wrong})
		}
	}
}

// meantToBeChecked reports whether a cluster has health checks, even if none of them could be
// read.
func (e *examiner) meantToBeChecked(cluster *source.Cluster) bool {
	return len(cluster.HealthChecks) > 0 ||
		slices.ContainsFunc(e.badFields[cluster.Name], func(field string) bool { return strings.HasPrefix(field, "health_checks") }) ||
		slices.ContainsFunc(e.rules.DefaultHealthChecks, func(d source.DefaultHealthChecks) bool { return source.Match(d.Glob, cluster.Name) })
}

// addExclusion reports the reason why a cluster or one of its endpoints is not checked.
func (e *examiner) addExclusion(cluster *source.Cluster, q specifier.Exclusion) {
	p := source.Problem{File: cluster.File, Line: cluster.Line, Resource: cluster.Name, Message: q.Reason}
	if q.Address != "" {
		address := q.Address
		if original := e.named[cluster.Assignment]; original != nil {
			address = envoy.AddressOf(original.GetEndpoints()[q.Locality].GetLbEndpoints()[q.Index], q.Locality, q.Index)
		}
		p.Message = fmt.Sprintf("endpoint %s: %s", address, q.Reason)
		if place := e.places[cluster.Assignment]; place.File != "" {
			p.File, p.Line = place.File, cmp.Or(place.Line(q.Locality, q.Index), p.Line)
		}
	}
	e.add(p)
}
