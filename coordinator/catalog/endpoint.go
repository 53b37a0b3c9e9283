package catalog

import (
	"cmp"

	"hdsd/health"
)

// Endpoint is one endpoint of a cluster, checked or not. It is small because there may be
// millions: what is known of a checked one is in Checked.
type Endpoint struct {
	of           *Cluster
	at           int32         // index in of.Checked.Endpoints; below 0: -1 - index in of.unchecked
	SourceHealth health.Status // the health that the source gives it
	Priority     uint8         // as data planes get it
	InAssignment bool          // whether data planes get it
}

// unchecked is an endpoint that is not checked.
type unchecked struct {
	key      health.Endpoint
	hash     health.Hash
	reason   string
	hostname string
}

// Cluster returns the version of the cluster that the endpoint is in.
func (e *Endpoint) Cluster() *Cluster { return e.of }

// Checked returns the index in Checked.Endpoints, or None if the endpoint is not checked.
func (e *Endpoint) Checked() int { return max(int(e.at), None) }

func (e *Endpoint) unchecked() *unchecked { return &e.of.unchecked[-1-e.at] }

// Key returns the endpoint's key.
func (e *Endpoint) Key() health.Endpoint {
	if e.at >= 0 {
		return e.of.Checked.Key(int(e.at))
	}
	return e.unchecked().key
}

// Hash returns the hash of the key.
func (e *Endpoint) Hash() health.Hash {
	if e.at >= 0 {
		return e.of.Hashes[e.at]
	}
	return e.unchecked().hash
}

// Reason says why the endpoint is not checked; empty if it is.
func (e *Endpoint) Reason() string {
	if e.at >= 0 {
		return ""
	}
	return e.unchecked().reason
}

// Address returns the address in the key.
func (e *Endpoint) Address() string {
	if e.at >= 0 {
		return e.of.Checked.Endpoints[e.at].Address
	}
	return e.unchecked().key.Address
}

// Hostname returns the hostname from the source; empty without one.
func (e *Endpoint) Hostname() string {
	switch {
	case e.at < 0:
		return e.unchecked().hostname
	case e.of.hostnames != nil:
		return e.of.hostnames[e.at]
	}
	return ""
}

// Locality returns the locality in the key. It must not be changed.
func (e *Endpoint) Locality() *health.Locality {
	if e.at >= 0 {
		return e.of.Checked.LocalityOf(int(e.at))
	}
	return &e.unchecked().key.Locality
}

// Weight returns the weight among the endpoints of its priority if weights count for panic; else 1.
func (e *Endpoint) Weight() uint32 {
	if weight, ok := e.of.weights[e.Hash()]; ok {
		return weight
	}
	return 1
}

// compare orders the endpoints of a cluster by their keys.
func (e *Endpoint) compare(f *Endpoint) int {
	in, other := e.Locality(), f.Locality()
	if in == other {
		return cmp.Compare(e.Address(), f.Address())
	}
	return cmp.Or(in.Compare(*other), cmp.Compare(e.Address(), f.Address()))
}
