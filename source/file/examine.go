package file

import (
	"slices"

	"hdsd/internal/yamlpb"
	"hdsd/source"
)

// Places are the places of assignments in their files.
type Places map[*source.Assignment]Place

// Place is the place of an assignment in its file.
type Place struct {
	File  string
	Lines [][]int // of its endpoints, by locality; empty if the file has no lines
}

// Examine returns every problem of the files at a path. The set has whatever is
// readable of the resources, however faulty. Use it only to look for further problems.
func Examine(o Options) (*source.Set, Places) {
	files, fatal := read(o.Path)
	places := Places{}
	found, senseless := parse(files, places, o.MaxClusterEndpoints)
	clusters, problems := join(o.Name, found.resources, true)
	problems = slices.Concat(fatal, senseless, found.problems, problems)
	sortProblems(problems)
	return &source.Set{Source: o.Name, Clusters: clusters, Problems: slices.Compact(problems)}, places
}

// add records the place of an assignment. A nil p records nothing.
func (p Places) add(r *resource, node yamlpb.Node) {
	if p == nil || r.lists == nil {
		return
	}
	if r.cluster != nil {
		node, _ = node.Field("load_assignment")
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
	p[r.lists] = place
}

// Line returns the line of an endpoint, or 0 if unknown.
func (p Place) Line(locality, index int) int {
	if locality >= len(p.Lines) || index >= len(p.Lines[locality]) {
		return 0
	}
	return p.Lines[locality][index]
}
