package file

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"hdsd/source"
)

// join makes clusters of resources, by name, in any order. It skips resources that were
// not read in full, unless parts is set.
func join(name string, resources []resource, parts bool) ([]*source.Cluster, []source.Problem) {
	j := &joiner{source: name, parts: parts, clusters: make(map[string]*resource), assignments: make(map[string]*resource)}
	j.unique(resources)
	result := make([]*source.Cluster, 0, len(j.clusters))
	used := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(j.clusters)) {
		c := j.cluster(j.clusters[name])
		used[c.ServiceName] = used[c.ServiceName] || j.clusters[name].broken || isEDS(j.clusters[name])
		result = append(result, c)
	}
	for _, name := range slices.Sorted(maps.Keys(j.assignments)) {
		a := j.assignments[name]
		switch {
		case used[name]:
		case j.clusters[name] != nil:
			j.problem(a, true, "cluster %q has its own endpoints, since its type is not EDS: this ClusterLoadAssignment is left out", name)
		default:
			result = append(result, j.lone(a))
		}
	}
	slices.SortFunc(result, func(a, b *source.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return result, j.problems
}

type joiner struct {
	source                string
	parts                 bool
	clusters, assignments map[string]*resource // by name
	problems              []source.Problem
}

func (j *joiner) problem(r *resource, warning bool, format string, args ...any) {
	j.problems = append(j.problems, source.Problem{
		File: r.file, Line: r.line, Resource: r.name, Message: fmt.Sprintf(format, args...), Warning: warning,
	})
}

// unique finds the one resource of each kind and name. Of two that differ it rejects
// both, because the order must not decide.
func (j *joiner) unique(resources []resource) {
	type key struct {
		cluster bool
		name    string
	}
	groups := make(map[key][]*resource)
	for i := range resources {
		r := &resources[i]
		k := key{r.cluster != nil, r.name}
		groups[k] = append(groups[k], r)
	}
	for k, group := range groups {
		first := group[0]
		if len(group) > 1 {
			first = j.conflict(group)
		}
		if k.cluster {
			j.clusters[k.name] = first
		} else {
			j.assignments[k.name] = first
		}
	}
}

func (j *joiner) conflict(group []*resource) *resource {
	slices.SortFunc(group, func(a, b *resource) int {
		if c := strings.Compare(a.file, b.file); c != 0 {
			return c
		}
		return a.line - b.line
	})
	first, places := group[0], make([]string, len(group))
	same := true
	for i, r := range group {
		places[i] = r.place()
		same = same && !r.broken && !first.broken && bytes.Equal(encoded(r), encoded(first))
	}
	for _, r := range group[1:] {
		if same {
			j.problem(r, true, "is the same as at %s: remove one of them", first.place())
		} else {
			j.problem(r, false, "has the same name as another one, at %s, but differs: neither is used until one of them is removed or renamed", first.place())
		}
	}
	if same {
		return first
	}
	// The order must not decide which one lends its type to the rest.
	conflict := *slices.MinFunc(group, func(a, b *resource) int { return bytes.Compare(encoded(a), encoded(b)) })
	conflict.file, conflict.line, conflict.broken = first.file, first.line, true
	conflict.reason = fmt.Sprintf("there are %d different ones of this name (%s): keep one", len(group), strings.Join(places, ", "))
	return &conflict
}

func encoded(r *resource) []byte {
	if r.cluster == nil {
		return r.lists.Wire()
	}
	whole := &source.Cluster{Config: r.cluster, Assignment: r.lists}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(whole.Message())
	if err != nil { // text that is not UTF-8, which was rejected
		return nil
	}
	return data
}

func isEDS(r *resource) bool {
	return (&source.Cluster{Config: r.cluster}).EDS()
}

func (j *joiner) cluster(r *resource) *source.Cluster {
	c := &source.Cluster{
		Source: j.source, Name: r.name, ServiceName: r.name, File: r.file, Line: r.line, Rejected: r.reason,
	}
	if !r.broken || j.parts {
		c.Config = r.cluster
		c.HealthChecks = r.cluster.GetHealthChecks()
	}
	if !isEDS(r) {
		if c.Config != nil {
			c.Assignment = r.lists
		}
		return c
	}
	if name := r.cluster.GetEdsClusterConfig().GetServiceName(); name != "" {
		c.ServiceName = name
	}
	if a := j.assignments[c.ServiceName]; a != nil {
		if !a.broken || j.parts {
			c.Assignment = a.lists
		}
		if c.Rejected == "" && a.reason != "" {
			c.Rejected = "its ClusterLoadAssignment: " + a.reason
		}
	}
	return c
}

func (j *joiner) lone(a *resource) *source.Cluster {
	c := &source.Cluster{
		Source: j.source, Name: a.name, ServiceName: a.name, File: a.file, Line: a.line, Rejected: a.reason, Lone: true,
	}
	if !a.broken || j.parts {
		c.Assignment = a.lists
	}
	return c
}
