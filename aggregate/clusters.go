package aggregate

import "hdsd/health"

// cluster counts the endpoints of a cluster.
type cluster struct{ size, down int }

// mostlyDown reports whether more than half of a cluster is down.
func (k *cluster) mostlyDown() bool { return 2*k.down > k.size }

// clusters counts the endpoints of each cluster, and how many of them are down.
type clusters struct{ pool[string, cluster] }

// join adds an endpoint to a cluster.
func (k *clusters) join(e *endpoint, name string) {
	e.cluster, _ = k.use(name)
	c := k.at(e.cluster)
	c.size++
	if e.status.Down() {
		c.down++
	}
}

// leave removes an endpoint from its cluster. The cluster stays until drop.
func (k *clusters) leave(e *endpoint) {
	c := k.at(e.cluster)
	c.size--
	if e.status.Down() {
		c.down--
	}
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
