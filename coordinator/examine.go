package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"hdsd/config"
	"hdsd/coordinator/catalog"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/hds/specifier"
	"hdsd/health"
	"hdsd/source"
	"hdsd/source/file"
)

// Findings is what Examine found in the sources of a configuration.
type Findings struct {
	Clusters, Endpoints int
	Checked             int              // of the endpoints
	Problems            []source.Problem // one without a file is with the configuration
	Unread              []string         // names of sources that are management servers
}

// Examine reads the file sources as a start would and finds what would not be
// checked, and why, by file and line. It changes nothing, and asks no
// management server. Of a configuration with problems it reads what there is.
func Examine(c *configv1.Config) Findings {
	e := examiner{rules: catalog.NewRules(c), places: file.Places{}, known: map[[2]string]bool{}, fields: map[string][]string{}}
	e.rules.Options.Verbose = true
	var sets []*source.Set
	for _, from := range c.GetSources() {
		sets = append(sets, e.read(from))
	}
	merged := source.Merge(nil, sets, e.rules.DefaultHealthChecks)
	e.found.Problems = append(e.found.Problems, merged.Problems...)
	for _, from := range merged.Clusters {
		e.cluster(from)
	}
	if len(e.found.Unread) == 0 { // else who knows
		e.strays(merged.Clusters)
		e.policies(c.GetPolicies(), merged.Clusters)
	}
	slices.SortStableFunc(e.found.Problems, func(a, b source.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return e.found
}

// examiner collects what is found.
type examiner struct {
	rules  *catalog.Rules
	places file.Places
	known  map[[2]string]bool  // by cluster and place: endpoints that could not be read, in which more may be wrong for that
	fields map[string][]string // by cluster: what its source found something wrong with
	found  Findings
}

// inResources is the path of a resource.
var inResources = regexp.MustCompile(`^(resources|static_resources\.clusters)(\[\d+\])?(\.resource)?\.`)

var inEndpoint = regexp.MustCompile(`endpoints\[\d+\]\.lb_endpoints\[\d+\]`)

func (e *examiner) problem(p source.Problem) { e.found.Problems = append(e.found.Problems, p) }

// read reads a source as far as that is possible.
func (e *examiner) read(from *configv1.Source) *source.Set {
	path, watched := config.PathOf(from)
	if path == "" {
		if from.GetConfigSource().GetApiConfigSource() != nil {
			e.found.Unread = append(e.found.Unread, from.GetName())
		}
		return nil // else a problem of the configuration
	}
	if err := watchable(watched); err != nil {
		e.problem(source.Problem{File: path, Resource: from.GetName(), Message: err.Error()})
	}
	set, places := file.Examine(file.Options{Name: from.GetName(), Path: path})
	maps.Copy(e.places, places)
	for _, p := range set.Problems {
		e.known[[2]string{p.Resource, inEndpoint.FindString(p.Field)}] = true
		e.fields[p.Resource] = append(e.fields[p.Resource], inResources.ReplaceAllString(p.Field, ""))
	}
	return set
}

func (e *examiner) cluster(from *source.Cluster) {
	k := catalog.Prepare(from, e.rules)
	e.found.Clusters++
	e.found.Endpoints += len(k.Endpoints)
	e.twins(from)
	if from.Config != nil && !eds.Publishable(from.Config) && k.IsChecked() {
		e.warn(from, "has Envoys find its endpoints themselves, so it goes to them as it came in, with its own health checks; "+
			"make it STATIC or EDS, with IP addresses, to have them take the verdicts")
	}
	if k.Checked != nil {
		e.found.Checked += len(k.Checked.Endpoints)
	}
	whole := from.Quarantine != "" // which is among the source's problems already
	if !whole {
		for _, q := range k.Quarantined() {
			e.quarantined(from, q)
			whole = whole || q.Address == ""
		}
		e.found.Problems = append(e.found.Problems, needs(k)...)
	}
	if !e.checks(from) || !whole && k.Checked != nil {
		return
	}
	if from.Quarantine != "" && len(from.HealthChecks) > 0 {
		e.more(from)
	}
	for _, q := range specifier.ReviewEndpoints(from.Name, from.Assignment, e.rules.Options) {
		if !e.known[[2]string{from.Name, fmt.Sprintf("endpoints[%d].lb_endpoints[%d]", q.Locality, q.Index)}] {
			e.quarantined(from, q)
		}
	}
}

// more says what its source did not find wrong with a cluster: nothing about
// fields that it did find something wrong with.
func (e *examiner) more(from *source.Cluster) {
	for _, wrong := range specifier.ReviewCluster(from.Name, from.Config, from.Assignment, from.HealthChecks, e.rules.Options) {
		field, _, _ := strings.Cut(wrong, ": ")
		if !slices.ContainsFunc(e.fields[from.Name], func(known string) bool {
			return strings.HasPrefix(known+".", field+".") || strings.HasPrefix(field+".", known+".")
		}) {
			e.quarantined(from, specifier.Quarantined{Reason: wrong})
		}
	}
}

// checks tells whether a cluster is meant to be checked, if only by health
// checks of which nothing could be read.
func (e *examiner) checks(from *source.Cluster) bool {
	return len(from.HealthChecks) > 0 ||
		slices.ContainsFunc(e.fields[from.Name], func(field string) bool { return strings.HasPrefix(field, "health_checks") }) ||
		slices.ContainsFunc(e.rules.DefaultHealthChecks, func(d source.DefaultHealthChecks) bool { return source.Match(d.Glob, from.Name) })
}

// quarantined says what is wrong with a cluster or one of its endpoints.
func (e *examiner) quarantined(from *source.Cluster, q specifier.Quarantined) {
	p := source.Problem{File: from.File, Line: from.Line, Resource: from.Name, Message: q.Reason}
	if q.Address != "" {
		p.Message = fmt.Sprintf("endpoint %s: %s", q.Address, q.Reason)
		if place := e.places[from.Assignment]; place.File != "" {
			p.File, p.Line = place.File, cmp.Or(place.Line(q.Locality, q.Index), p.Line)
		}
	}
	e.problem(p)
}

// needs warns of what a plain Envoy may not be able to do.
func needs(k *catalog.Cluster) []source.Problem {
	var warnings []source.Problem
	if k.Checked == nil {
		return nil
	}
	for _, need := range k.Checked.Needs {
		if slices.Contains([]health.Ability{health.HTTP, health.TCP}, need) {
			continue
		}
		warnings = append(warnings, source.Problem{
			File: k.Source.File, Line: k.Source.Line, Resource: k.Source.Name, Warning: true,
			Message: fmt.Sprintf("checked only by checkers that are able to: %s", need),
		})
	}
	return warnings
}
