package aggregate

import "hdsd/health"

// cluster counts the endpoints of a cluster, those that are down, and those with a vote
// that counts.
type cluster struct{ size, down, observed int }

// mostlyDown reports whether more than half of a cluster is down.
func (k *cluster) mostlyDown() bool { return 2*k.down > k.size }

// clusters counts the endpoints of each cluster, how many of them are down, and how many
// have a vote that counts.
type clusters struct {
	pool[string, cluster]
	crossed []uint32 // those that came to have an observed endpoint, or none, in the present step

	changed   []uint32 // those of which an endpoint has changed since TakeChanged
	isChanged []bool   // by number: it is in changed
}

// touch takes note that an endpoint of a cluster has another verdict, or other votes.
func (k *clusters) touch(number uint32) {
	for int(number) >= len(k.isChanged) {
		k.isChanged = append(k.isChanged, false)
	}
	if !k.isChanged[number] {
		k.isChanged[number] = true
		k.changed = append(k.changed, number)
	}
}

// takeChanged returns the names of the clusters that were touched since the last call. One
// that is gone may be named by nothing.
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
	c := k.at(e.cluster)
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
	c := k.at(e.cluster)
	c.size--
	if e.status.Down() {
		c.down--
	}
	if e.votersOf() > 0 {
		c.observed--
	}
}

// recount takes note that an endpoint had so many votes that count, and has another number now.
func (k *clusters) recount(e *endpoint, before int) {
	k.touch(e.cluster)
	c := k.at(e.cluster)
	switch {
	case before == 0:
		if c.observed++; c.observed == 1 {
			k.crossed = append(k.crossed, e.cluster)
		}
	case e.votersOf() == 0:
		if c.observed--; c.observed == 0 {
			k.crossed = append(k.crossed, e.cluster)
		}
	}
}

// takeCrossed returns the names of the clusters that came to have an observed endpoint, or
// none. One may be named twice, and one that is gone may be named by nothing.
func (k *clusters) takeCrossed() (names []string) {
	for _, number := range k.crossed {
		names = append(names, k.key(number))
	}
	k.crossed = k.crossed[:0]
	return names
}

// turn sets the status of an endpoint.
func (k *clusters) turn(e *endpoint, to health.Status) {
	k.touch(e.cluster)
	c := k.at(e.cluster)
	if e.status.Down() {
		c.down--
	}
	if to.Down() {
		c.down++
	}
	e.status = to
}

// mostlyDown reports whether more than half of the endpoint's cluster is down.
func (k *clusters) mostlyDown(e *endpoint) bool { return k.at(e.cluster).mostlyDown() }
