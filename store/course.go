package store

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// fewStays is up to how many stays are read one by one. A course takes memory.
const fewStays = 8

// course has the transitions of an endpoint in one locality in memory. Where a wrong clock dated
// some, those of a short time can be anywhere: to look through all of them for each stay of an
// endpoint that moves to and fro takes the square of their number.
type course struct {
	steps    []step   // by time; those of one time in the order in which they were recorded
	latest   []uint64 // the last recorded time of steps[:i+1]
	earliest []int    // the index of the step of steps[i:] that was recorded first
}

func newCourse(steps []step) *course {
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	c := &course{steps: steps, latest: make([]uint64, len(steps)), earliest: make([]int, len(steps))}
	last := uint64(0)
	for i := range steps {
		last = max(last, steps[i].recorded)
		c.latest[i] = last
	}
	first := len(steps) - 1
	for i := range slices.Backward(steps) {
		if steps[i].recorded < steps[first].recorded {
			first = i
		}
		c.earliest[i] = first
	}
	return c
}

// index returns the index of the first step at a time or later.
func (c *course) index(from uint64) int {
	return sort.Search(len(c.steps), func(i int) bool { return c.steps[i].at >= from })
}

// before returns the recorded time of the last transition before a time.
func (c *course) before(end uint64) (recorded uint64, ok bool) {
	if i := c.index(end); i > 0 {
		return c.latest[i-1], true
	}
	return 0, false
}

// next returns the first transition that was recorded of those at a time or later.
func (c *course) next(start uint64) (step, bool) {
	if i := c.index(start); i < len(c.steps) {
		return c.steps[c.earliest[i]], true
	}
	return step{}, false
}

// between returns the transitions of a period, as they were recorded.
func (c *course) between(start, end uint64) []step {
	first := c.index(start)
	all := slices.Clone(c.steps[first:max(first, c.index(end))])
	slices.SortFunc(all, func(a, b step) int { return cmp.Compare(a.recorded, b.recorded) })
	return all
}

// readCourses reads the courses of all stays, if they are many and a wrong clock dated some
// transitions.
func (p *past) readCourses(stays []stay) {
	p.courses = nil
	if len(stays) <= fewStays || !p.dates.disordered() {
		return
	}
	courses := map[string]*course{}
	for i := range stays {
		row := rowOf(&stays[i].endpoint)
		if courses[string(row)] != nil {
			continue
		}
		var all []step
		p.steps(row, 0, math.MaxUint64, func(s step) bool {
			all = append(all, s)
			return true
		})
		courses[string(row)] = newCourse(all)
	}
	p.courses = courses
}
