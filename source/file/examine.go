package file

import (
	"slices"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/internal/yamlpb"
	"hdsd/source"
)

// Places say where assignments are in their files.
type Places map[*endpointv3.ClusterLoadAssignment]Place

// Place is where an assignment is in its file.
type Place struct {
	File  string
	Lines [][]int // of its endpoints, by locality; none where the file has no lines
}

// Examine gives every problem of the files at a path. What could be read of
// resources is in the set, however little it is and whatever is wrong with it:
// it is to look for further problems in, and for nothing else.
func Examine(o Options) (*source.Set, Places) {
	files, fatal := read(o.Path)
	places := Places{}
	found, senseless := parse(files, places)
	clusters, problems := join(o.Name, found.resources, true)
	problems = slices.Concat(fatal, senseless, found.problems, problems)
	sortProblems(problems)
	return &source.Set{Source: o.Name, Clusters: clusters, Problems: slices.Compact(problems)}, places
}

// add notes where an assignment is; a nil p notes nothing.
func (p Places) add(r *resource, node yamlpb.Node) {
	a := r.lone
	if r.cluster != nil {
		a = r.cluster.GetLoadAssignment()
		node, _ = node.Field("load_assignment")
	}
	if p == nil || a == nil {
		return
	}
	place := Place{File: r.file}
	endpoints, _ := node.Field("endpoints")
	for _, group := range endpoints.Elements() {
		list, _ := group.Field("lb_endpoints")
		var lines []int
		for _, e := range list.Elements() {
			lines = append(lines, e.Line())
		}
		place.Lines = append(place.Lines, lines)
	}
	p[a] = place
}

// Line gives the line of an endpoint, 0 where it is not known.
func (p Place) Line(locality, index int) int {
	if locality >= len(p.Lines) || index >= len(p.Lines[locality]) {
		return 0
	}
	return p.Lines[locality][index]
}
