package config

import (
	"fmt"
	"iter"
	"regexp"
	"strconv"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/yamlpb"
)

// Bounds of a fleet, so that a typo does not take all memory.
const (
	maxFleetCheckers  = 100_000
	maxFleetClusters  = 1_000_000
	maxFleetEndpoints = 20_000_000
)

// aVersion matches the versions that a checker of a fleet can have.
var aVersion = regexp.MustCompile(`^(hdsd|envoy/\d{1,9}\.\d{1,9}(\.\d{1,9})?)$`)

// Fleet is a fleet as a file describes it.
type Fleet struct {
	*configv1.Fleet
	root yamlpb.Node
}

// Problem makes a problem of a field that only shows in combination with something
// else.
func (f *Fleet) Problem(field, format string, args ...any) Problem {
	return f.root.Problem(field, format, args...)
}

// LoadFleet reads and checks the description of a fleet. If there is a problem, it
// returns no Fleet.
func LoadFleet(path string) (*Fleet, []Problem) {
	data, err := yamlpb.ReadFile(path, maxBytes)
	if err != nil {
		return nil, []Problem{{File: path, Message: err.Error()}}
	}
	return parseFleet(path, data)
}

func parseFleet(path string, data []byte) (*Fleet, []Problem) {
	root, problems := yamlpb.ParseOwn(path, data)
	if len(problems) > 0 {
		return nil, problems
	}
	fleet := &configv1.Fleet{}
	c := &checks{root: root, problems: root.Decode(fleet)}
	for _, problem := range c.problems {
		c.spoiled = append(c.spoiled, problem.Field)
	}
	c.fleet(fleet)
	if len(c.problems) > 0 {
		yamlpb.SortProblems(c.problems)
		return nil, c.problems
	}
	return &Fleet{fleet, root}, nil
}

// Numbered returns the names in a group of count: name itself if count is one, else
// name-1, name-2 and so on.
func Numbered(name string, count uint32) iter.Seq[string] {
	return func(yield func(string) bool) {
		if count <= 1 {
			yield(name)
			return
		}
		for i := range count {
			if !yield(name + "-" + strconv.FormatUint(uint64(i)+1, 10)) {
				return
			}
		}
	}
}

func (c *checks) fleet(f *configv1.Fleet) {
	c.checkerGroups(f.GetCheckers())
	c.clusterGroups(f.GetClusters())
	for i, group := range f.GetDataPlanes() {
		if group.GetCount() == 0 {
			c.add(fmt.Sprintf("data_planes[%d].count", i), "is needed: how many Envoys")
		}
	}
}

func (c *checks) checkerGroups(groups []*configv1.CheckerGroup) {
	if len(groups) == 0 {
		c.add("checkers", "at least one group is required, such as checkers: [{id: checker, count: 3, version: hdsd}]")
	}
	var sum tally
	for i, group := range groups {
		prefix := fmt.Sprintf("checkers[%d]", i)
		sum.add(c.groupSize(prefix, group.GetCount()), 1)
		c.checkerGroup(prefix, group)
	}
	if !c.atMost("checkers", sum, maxFleetCheckers, "checkers") {
		return
	}
	ids := names{}
	for i, group := range groups {
		c.unique(fmt.Sprintf("checkers[%d].id", i), group.GetId(), group.GetCount(), ids)
	}
}

func (c *checks) clusterGroups(groups []*configv1.ClusterGroup) {
	var sum, endpoints tally
	for i, group := range groups {
		prefix := fmt.Sprintf("clusters[%d]", i)
		count := c.groupSize(prefix, group.GetCount())
		sum.add(count, 1)
		endpoints.add(count, uint64(group.GetEndpoints()))
		if group.GetEndpoints() == 0 {
			c.add(prefix+".endpoints", "is needed: how many endpoints each has")
		}
		for j, check := range group.GetHealthChecks() {
			c.valid(fmt.Sprintf("%s.health_checks[%d]", prefix, j), check)
		}
	}
	withinLimit := c.atMost("clusters", sum, maxFleetClusters, "clusters")
	if !c.atMost("clusters", endpoints, maxFleetEndpoints, "endpoints") || !withinLimit {
		return
	}
	used := names{}
	for i, group := range groups {
		c.unique(fmt.Sprintf("clusters[%d].name", i), group.GetName(), group.GetCount(), used)
	}
}

func (c *checks) checkerGroup(prefix string, group *configv1.CheckerGroup) {
	version := group.GetVersion()
	if !aVersion.MatchString(version) {
		c.add(prefix+".version", `is %q: write envoy/ and a release, as envoy/1.40.0, or hdsd for the built-in checker`, version)
	}
	if version == "hdsd" && len(group.GetWithout()) > 0 {
		c.add(prefix+".without", "is for Envoys: the built-in checker is built in one way only")
	}
	if weight := group.GetWeight(); (weight != 0 || c.root.Has(prefix+".weight")) && !(weight >= minWeight && weight <= maxWeight) {
		c.add(prefix+".weight", "is %g: from %g to %d is possible, 1 is usual", weight, minWeight, maxWeight)
	}
	if group.GetWeight() != 0 && group.GetMetadata()["hdsd.weight"] != "" {
		c.add(prefix+".weight", "is hdsd.weight of the metadata, which is there too: remove one of them")
	}
	if len(group.GetId()) > maxNameLength {
		c.add(prefix+".id", "is longer than %d bytes", maxNameLength)
	}
}

// groupSize returns the size of a group.
func (c *checks) groupSize(prefix string, count uint32) uint64 {
	if count == 0 && c.root.Has(prefix+".count") {
		c.add(prefix+".count", "is 0: remove the group, or say how many")
	}
	return uint64(max(count, 1))
}

// tally is a sum that saturates at a value far too large.
type tally uint64

const tooMany = 1 << 40

func (t *tally) add(groups, size uint64) { *t = min(*t+tally(min(groups*size, tooMany)), tooMany) }

// atMost reports whether a number is within its limit.
func (c *checks) atMost(field string, sum tally, limit int, noun string) bool {
	if sum <= tally(limit) {
		return true
	}
	c.add(field, "more than %d %s are too many for a simulation", limit, noun)
	return false
}

// names maps the names in use to their groups.
type names map[string]string

func (c *checks) unique(field, name string, count uint32, seen names) {
	if name == "" {
		c.add(field, "is needed: the prefix of the group's names")
		return
	}
	for numbered := range Numbered(name, count) {
		if first := seen[numbered]; first != "" {
			c.add(field, "gives %q, as %s does: choose another", numbered, first)
			return
		}
		seen[numbered] = field
	}
}
