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
}

// join adds an endpoint to a cluster.
func (k *clusters) join(e *endpoint, name string) {
	e.cluster, _ = k.use(name)
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

// observe takes note that an endpoint has a vote that counts now, or none any more.
func (k *clusters) observe(e *endpoint) {
	c, was := k.at(e.cluster), 0
	if e.votersOf() > 0 {
		c.observed++
	} else {
		c.observed--
		was = 1
	}
	if c.observed+was == 1 {
		k.crossed = append(k.crossed, e.cluster)
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
