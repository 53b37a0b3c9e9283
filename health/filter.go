package health

// Filter narrows endpoints; zero fields do not.
type Filter struct {
	Unhealthy bool     // only a health that is neither HEALTHY nor DEGRADED
	Locality  Locality // an empty part matches all
}

// Has reports whether the filter lets an endpoint pass that has a status.
func (f Filter) Has(in Locality, is Status) bool { return f.In(in) && (!f.Unhealthy || !is.Up()) }

// In reports whether the filter lets endpoints of a locality pass.
func (f Filter) In(in Locality) bool { return f.Locality.includes(in) }

// Any reports whether the filter lets everything pass.
func (f Filter) Any() bool { return f == Filter{} }
