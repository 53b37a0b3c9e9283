package assign_test

// flow is a network that is filled from node 0 to node 1, as far as it can be, by
// Dinic's algorithm.
type flow struct {
	arcs  [][]int // by node; each has its reverse beside it
	to    []int32
	room  []int64
	used  []int64
	level []int32 // how far a node is from the source; -1 if nothing gets there
	next  []int
}

func (f *flow) node() int32 {
	f.arcs = append(f.arcs, nil)
	return int32(len(f.arcs) - 1)
}

func (f *flow) arc(from, to int32, room int64) int {
	n := len(f.to)
	f.to, f.room, f.used = append(f.to, to, from), append(f.room, room, 0), append(f.used, 0, 0)
	f.arcs[from], f.arcs[to] = append(f.arcs[from], n), append(f.arcs[to], n+1)
	return n
}

// reach finds how far everything is.
func (f *flow) reach() bool {
	f.level, f.next = make([]int32, len(f.arcs)), make([]int, len(f.arcs))
	for i := range f.level {
		f.level[i] = -1
	}
	f.level[0] = 0
	for queue := []int32{0}; len(queue) > 0; queue = queue[1:] {
		for _, a := range f.arcs[queue[0]] {
			if t := f.to[a]; f.room[a] > f.used[a] && f.level[t] < 0 {
				f.level[t] = f.level[queue[0]] + 1
				queue = append(queue, t)
			}
		}
	}
	return f.level[1] >= 0
}

func (f *flow) push(at int32, most int64) int64 {
	if at == 1 {
		return most
	}
	for ; f.next[at] < len(f.arcs[at]); f.next[at]++ {
		a := f.arcs[at][f.next[at]]
		if t := f.to[a]; f.room[a] > f.used[a] && f.level[t] == f.level[at]+1 {
			if n := f.push(t, min(most, f.room[a]-f.used[a])); n > 0 {
				f.used[a] += n
				f.used[a^1] -= n
				return n
			}
		}
	}
	return 0
}

// fill returns how much flows.
func (f *flow) fill() (sum int64) {
	for f.reach() {
		for n := f.push(0, 1<<60); n > 0; n = f.push(0, 1<<60) {
			sum += n
		}
	}
	return sum
}
