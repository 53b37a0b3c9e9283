package aggregate

import "hdsd/health"

// cluster is what is kept of a cluster as a whole.
type cluster struct {
	size, down int                 // endpoints
	held       []health.EndpointID // down only because they flap
	mass       mass
}

// mostlyDown tells whether more than half of a cluster is down.
func (k *cluster) mostlyDown() bool { return 2*k.down > k.size }

// enlist counts a new endpoint.
func (a *Aggregator) enlist(x *endpoint, e *Endpoint, t *terms) {
	x.policy = a.usePolicy(t)
	a.join(x, e.Cluster)
}

// join counts an endpoint to a cluster.
func (a *Aggregator) join(x *endpoint, name string) {
	x.cluster, _ = a.clusters.use(name)
	k := a.clusters.at(x.cluster)
	k.size++
	if x.status.Down() {
		k.down++
	}
}

// delist counts an endpoint that goes.
func (a *Aggregator) delist(id health.EndpointID, x *endpoint) {
	a.quit(id, x)
	a.policies.drop(x.policy)
}

// quit takes an endpoint out of its cluster.
func (a *Aggregator) quit(id health.EndpointID, x *endpoint) {
	a.forgetFlap(id, x)
	k := a.clusters.at(x.cluster)
	k.size--
	if x.status.Down() {
		k.down--
	}
	a.relieve(x.cluster)
	a.unrestrain(x)
	a.calmed(x.cluster)
	a.clusters.drop(x.cluster)
}

// turn gives an endpoint another status.
func (a *Aggregator) turn(e *endpoint, to health.Status) {
	k := a.clusters.at(e.cluster)
	if e.status.Down() {
		k.down--
	}
	if to.Down() {
		k.down++
	}
	e.status = to
	a.relieve(e.cluster)
	a.calmed(e.cluster)
}

// relieve looks at the endpoints that are held down anew when too many are down.
func (a *Aggregator) relieve(number uint32) {
	k := a.clusters.at(number)
	if !k.mostlyDown() {
		return
	}
	for _, id := range k.held {
		a.mark(id, &a.endpoints[id])
	}
}
