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

	"hdsd/config"
	"hdsd/coordinator/catalog"
	"hdsd/coordinator/targets"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/hds/specifier"
	"hdsd/health"
	"hdsd/internal/envoyaddr"
	"hdsd/source"
	"hdsd/source/file"
	"hdsd/source/names"
)

// Findings is what Examine found in the sources of a configuration.
type Findings struct {
	Clusters, Endpoints int
	Checked             int                    // of the endpoints
	Problems            []source.Problem       // one without a file is in the configuration
	Needs               map[health.Ability]int // clusters that only checkers with an ability can check
	Notes               []string               // what is worth knowing, and nothing to put right
	Unread              []string               // names of management servers that were not asked
	GRPC                []source.Problem       // what gRPC's own xDS clients refuse, or read differently
}

// Examine reads the file sources as a start would. Unless as is nil, it also asks the
// management servers once, as a start of hdsd as that node would: that takes as long as their
// initial_fetch_timeout, 30 s at most. It reports what would not be checked, and why, by file
// and line. Of a configuration with problems it reads what it can.
func Examine(ctx context.Context, c *configv1.Config, as *corev3.Node) Findings {
	e := newExaminer(c)
	var sets []*source.Set
	for _, from := range c.GetSources() {
		sets = append(sets, e.read(from))
	}
	if as != nil {
		e.ask(ctx, c, as, sets)
	} else {
		e.skip(c)
	}
	for i, from := range c.GetSources() {
		if from.GetResolveNames() && sets[i] != nil {
			sets[i] = e.withAddresses(sets[i])
		}
	}
	merged := source.Merge(nil, sets, e.rules.DefaultHealthChecks)
	e.add(merged.Problems...)
	for _, from := range merged.Clusters {
		e.examineCluster(from)
	}
	if e.sixth > 0 {
		e.found.Notes = append(e.found.Notes, fmt.Sprintf("clusters with IPv6 endpoints: %d; a checker without IPv6 finds these endpoints UNHEALTHY, and hdsd cannot tell: "+
			"if some of yours have none, name those that have it in policies[].checkers", e.sixth))
	}
	if len(e.found.Unread) == 0 && c.GetRelay() == nil { // a management server may have what the files lack
		e.findUnusedAssignments(merged.Clusters)
		e.findUnusedPolicies(c.GetPolicies(), merged.Clusters)
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
	unreadable map[endpointPlace]bool                                   // endpoints with a problem of reading, which may cause others
	named      map[*source.Assignment]*endpointv3.ClusterLoadAssignment // of those with addresses in the place of names: the original

	badFields map[string][]string // by cluster: the fields in which its source found problems

	targets *targets.Table // what addresses get of the clusters so far

	maxInCluster int // endpoints; 0: any number
	sixth        int // clusters with IPv6 endpoints, of which no policy says which checkers reach them
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

// read reads what it can of a source.
func (e *examiner) read(from *configv1.Source) *source.Set {
	path, watched := config.PathOf(from)
	if path == "" {
		return nil // a management server, or what package config reports
	}
	if err := file.CheckWatchedDirectory(watched); err != nil {
		e.add(source.Problem{File: path, Resource: from.GetName(), Message: err.Error()})
	}
	set, places := file.Examine(file.Options{Name: from.GetName(), Path: path, MaxClusterEndpoints: e.maxInCluster})
	maps.Copy(e.places, places)
	for _, p := range set.Problems {
		e.unreadable[endpointPlace{p.Resource, endpointPath.FindString(p.Field)}] = true
		e.badFields[p.Resource] = append(e.badFields[p.Resource], resourcePath.ReplaceAllString(p.Field, ""))
	}
	return set
}

// skip notes which management servers are not asked.
func (e *examiner) skip(c *configv1.Config) {
	for _, from := range c.GetSources() {
		if from.GetConfigSource().GetApiConfigSource() != nil {
			e.found.Unread = append(e.found.Unread, from.GetName())
		}
	}
	if c.GetRelay() != nil {
		e.found.Unread = append(e.found.Unread, relayName)
	}
}

// withAddresses puts addresses in the place of the names that hdsd would resolve. A name
// may be right although it cannot be resolved here.
func (e *examiner) withAddresses(set *source.Set) *source.Set {
	out, originals := names.Example(set)
	for assignment, original := range originals {
		e.places[assignment] = e.places[original]
		e.named[assignment] = original.Message()
	}
	return out
}

func (e *examiner) examineCluster(from *source.Cluster) {
	k := catalog.Prepare(from, e.rules)
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
		e.warn(from, "%s", raised)
	}
	excluded := from.Rejected != "" // the source reports why
	known := map[string]bool{}      // addresses
	if !excluded {
		for _, q := range k.Exclusions() {
			e.addExclusion(from, q)
			excluded = excluded || q.Address == ""
			known[q.Address] = true
		}
		e.countNeeds(k)
		e.countProbes(k)
	}
	if e.meantToBeChecked(from) && (excluded || k.Checked == nil) {
		e.examineExcluded(from, known)
	}
}

// examineExcluded looks for further problems in a cluster that is excluded as a
// whole, apart from endpoints of which a problem is known.
func (e *examiner) examineExcluded(from *source.Cluster, known map[string]bool) {
	if from.Rejected != "" && len(from.HealthChecks) > 0 {
		e.reviewCluster(from)
	}
	for _, q := range specifier.ReviewEndpoints(from.Name, from.Assignment.Message(), e.rules.Options) {
		if !known[q.Address] && !e.unreadable[endpointPlace{from.Name, fmt.Sprintf("endpoints[%d].lb_endpoints[%d]", q.Locality, q.Index)}] {
			e.addExclusion(from, q)
		}
	}
}

// reviewCluster reports problems of a cluster in fields about which its source
// reports none.
func (e *examiner) reviewCluster(from *source.Cluster) {
	for _, wrong := range specifier.ReviewCluster(from.Name, from.Config, from.Assignment.Message(), from.HealthChecks, e.rules.Options) {
		field, _, _ := strings.Cut(wrong, ": ")
		if !slices.ContainsFunc(e.badFields[from.Name], func(known string) bool {
			return strings.HasPrefix(known+".", field+".") || strings.HasPrefix(field+".", known+".")
		}) {
			e.addExclusion(from, specifier.Exclusion{Reason: wrong})
		}
	}
}

// meantToBeChecked tells whether a cluster has health checks, even if none of
// them could be read.
func (e *examiner) meantToBeChecked(from *source.Cluster) bool {
	return len(from.HealthChecks) > 0 ||
		slices.ContainsFunc(e.badFields[from.Name], func(field string) bool { return strings.HasPrefix(field, "health_checks") }) ||
		slices.ContainsFunc(e.rules.DefaultHealthChecks, func(d source.DefaultHealthChecks) bool { return source.Match(d.Glob, from.Name) })
}

// addExclusion reports what keeps a cluster or one of its endpoints from being
// checked.
func (e *examiner) addExclusion(from *source.Cluster, q specifier.Exclusion) {
	p := source.Problem{File: from.File, Line: from.Line, Resource: from.Name, Message: q.Reason}
	if q.Address != "" {
		address := q.Address
		if original := e.named[from.Assignment]; original != nil {
			address = envoyaddr.AddressOf(original.GetEndpoints()[q.Locality].GetLbEndpoints()[q.Index], q.Locality, q.Index)
		}
		p.Message = fmt.Sprintf("endpoint %s: %s", address, q.Reason)
		if place := e.places[from.Assignment]; place.File != "" {
			p.File, p.Line = place.File, cmp.Or(place.Line(q.Locality, q.Index), p.Line)
		}
	}
	e.add(p)
}
