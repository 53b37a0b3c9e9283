package aggregate

import "hdsd/health"

// cluster counts the endpoints of a cluster, those that are down, and those with a vote
// that counts.
type cluster struct{ size, down, observed int }

// mostlyDown reports whether more than half of a cluster is down.
func (k *cluster) mostlyDown() bool { return 2*k.down > k.size }

// clusters counts the endpoints of each cluster, how many of them are down, and how many have a
// vote that counts.
type clusters struct {
	pool[string, cluster]
	crossed []uint32 // clusters that gained their first or lost their last observed endpoint in this step

	changed   []uint32 // clusters with an endpoint that has changed since TakeChanged
	isChanged []bool   // by number: it is in changed
}

// touch notes a changed verdict or changed votes of an endpoint of a cluster.
func (k *clusters) touch(number uint32) {
	for int(number) >= len(k.isChanged) {
		k.isChanged = append(k.isChanged, false)
	}
	if !k.isChanged[number] {
		k.isChanged[number] = true
		k.changed = append(k.changed, number)
	}
}

// takeChanged returns and clears the names of the touched clusters. The name of a removed one
// may be empty.
func (k *clusters) takeChanged() []string {
	names := make([]string, len(k.changed))
	for i, number := range k.changed {
		names[i] = k.key(number)
		k.isChanged[number] = false
	}
	k.changed = k.changed[:0]
	return names
}

// join adds an endpoint to a cluster.
func (k *clusters) join(e *endpoint, name string) {
	e.cluster, _ = k.use(name)
	k.touch(e.cluster)
	c := k.get(e.cluster)
	c.size++
	if e.status.Down() {
		c.down++
	}
	if e.votersOf() > 0 {
		c.observed++
	}
}

// leave removes an endpoint from its cluster. The cluster stays until drop.
func (k *clusters) leave(e *endpoint) {
	c := k.get(e.cluster)
	c.size--
	if e.status.Down() {
		c.down--
	}
	if e.votersOf() > 0 {
		c.observed--
	}
}

// recount notes a changed number of votes that count on an endpoint, given the previous one.
func (k *clusters) recount(e *endpoint, previous int) {
	k.touch(e.cluster)
	c := k.get(e.cluster)
	switch {
	case previous == 0:
		if c.observed++; c.observed == 1 {
			k.crossed = append(k.crossed, e.cluster)
		}
	case e.votersOf() == 0:
		if c.observed--; c.observed == 0 {
			k.crossed = append(k.crossed, e.cluster)
		}
	}
}

// takeCrossed returns and clears the names of the clusters that gained their first or lost
// their last observed endpoint. A name may come twice, and that of a removed cluster may be
// empty.
func (k *clusters) takeCrossed() (names []string) {
	for _, number := range k.crossed {
		names = append(names, k.key(number))
	}
	k.crossed = k.crossed[:0]
	return names
}

// setStatus sets the status of an endpoint.
func (k *clusters) setStatus(e *endpoint, status health.Status) {
	k.touch(e.cluster)
	c := k.get(e.cluster)
	if e.status.Down() {
		c.down--
	}
	if status.Down() {
		c.down++
	}
	e.status = status
}

// mostlyDown reports whether more than half of the endpoint's cluster is down.
func (k *clusters) mostlyDown(e *endpoint) bool { return k.get(e.cluster).mostlyDown() }
