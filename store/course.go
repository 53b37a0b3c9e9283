package store

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// fewStays is the largest number of stays read one by one: a course takes memory.
const fewStays = 8

// course holds an endpoint's transitions in one locality in memory. Transitions misdated by a
// wrong clock can be anywhere in a short period: searching all of them for each stay of an
// endpoint that often moves takes quadratic time.
type course struct {
	steps    []step   // by time; those of equal time as recorded
	latest   []uint64 // latest[i] is the largest recorded time of steps[:i+1]
	earliest []int    // earliest[i] is the index of the first recorded of steps[i:]
}

func newCourse(steps []step) *course {
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.time, b.time) })
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

// index returns the index of the first step dated start or later.
func (c *course) index(start uint64) int {
	return sort.Search(len(c.steps), func(i int) bool { return c.steps[i].time >= start })
}

// before returns the recorded time of the last transition before a time.
func (c *course) before(end uint64) (recorded uint64, ok bool) {
	if i := c.index(end); i > 0 {
		return c.latest[i-1], true
	}
	return 0, false
}

// next returns the first recorded of the transitions dated start or later.
func (c *course) next(start uint64) (step, bool) {
	if i := c.index(start); i < len(c.steps) {
		return c.steps[c.earliest[i]], true
	}
	return step{}, false
}

// period returns the transitions in [start, end), as recorded.
func (c *course) period(start, end uint64) []step {
	first := c.index(start)
	steps := slices.Clone(c.steps[first:max(first, c.index(end))])
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.recorded, b.recorded) })
	return steps
}

// readCourses reads the courses of all stays, if there are many of them and some transitions
// were misdated.
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
		var steps []step
		p.steps(row, 0, math.MaxUint64, func(s step) bool {
			steps = append(steps, s)
			return true
		})
		courses[string(row)] = newCourse(steps)
	}
	p.courses = courses
}
