package catalog

import (
	"cmp"

	"hdsd/health"
)

// Endpoint is one endpoint of a cluster, checked or not. It is small because there may be
// millions: the details of a checked one are in Checked.
type Endpoint struct {
	cluster      *Cluster
	index        int32         // index in cluster.Checked.Endpoints; below 0: -1 - index in cluster.unchecked
	SourceHealth health.Status // health from the source
	Priority     uint8         // priority for data planes
	InAssignment bool          // whether data planes get it
}

// unchecked is an endpoint that is not checked.
type unchecked struct {
	key      health.Endpoint
	hash     health.Hash
	reason   string
	hostname string
}

// Cluster returns the version of the endpoint's cluster.
func (e *Endpoint) Cluster() *Cluster { return e.cluster }

// Checked returns the index in Checked.Endpoints, or None if the endpoint is not checked.
func (e *Endpoint) Checked() int { return max(int(e.index), None) }

func (e *Endpoint) unchecked() *unchecked { return &e.cluster.unchecked[-1-e.index] }

// Key returns the endpoint's key.
func (e *Endpoint) Key() health.Endpoint {
	if e.index >= 0 {
		return e.cluster.Checked.Key(int(e.index))
	}
	return e.unchecked().key
}

// Hash returns the hash of the key.
func (e *Endpoint) Hash() health.Hash {
	if e.index >= 0 {
		return e.cluster.Hashes[e.index]
	}
	return e.unchecked().hash
}

// Reason returns the reason why the endpoint is not checked; empty if it is.
func (e *Endpoint) Reason() string {
	if e.index >= 0 {
		return ""
	}
	return e.unchecked().reason
}

// Address returns the address in the key.
func (e *Endpoint) Address() string {
	if e.index >= 0 {
		return e.cluster.Checked.Endpoints[e.index].Address
	}
	return e.unchecked().key.Address
}

// Hostname returns the hostname from the source; empty without one.
func (e *Endpoint) Hostname() string {
	switch {
	case e.index < 0:
		return e.unchecked().hostname
	case e.cluster.hostnames != nil:
		return e.cluster.hostnames[e.index]
	}
	return ""
}

// Locality returns the locality in the key. It must not be changed.
func (e *Endpoint) Locality() *health.Locality {
	if e.index >= 0 {
		return e.cluster.Checked.LocalityOf(int(e.index))
	}
	return &e.unchecked().key.Locality
}

// Weight returns the weight among the endpoints of its priority if weights count for panic; else 1.
func (e *Endpoint) Weight() uint32 {
	if weight, ok := e.cluster.weights[e.Hash()]; ok {
		return weight
	}
	return 1
}

// compare orders the endpoints of a cluster by their keys.
func (e *Endpoint) compare(f *Endpoint) int {
	locality, other := e.Locality(), f.Locality()
	if locality == other {
		return cmp.Compare(e.Address(), f.Address())
	}
	return cmp.Or(locality.Compare(*other), cmp.Compare(e.Address(), f.Address()))
}
