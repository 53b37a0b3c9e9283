package health

// Filter narrows endpoints; zero fields do not.
type Filter struct {
	Unhealthy bool     // only a health that is neither HEALTHY nor DEGRADED
	Locality  Locality // an empty part matches all
}

// Has reports whether an endpoint of a locality and a status passes the filter.
func (f Filter) Has(l Locality, s Status) bool { return f.In(l) && (!f.Unhealthy || !s.Up()) }

// In reports whether endpoints of a locality pass the filter.
func (f Filter) In(l Locality) bool { return f.Locality.includes(l) }

// Any reports whether the filter is empty.
func (f Filter) Any() bool { return f == Filter{} }
