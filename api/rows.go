package api

import (
	"math"
	"time"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

// The rows of long lists, field by field in the order of their messages' definition. The result
// equals that of the messages in convert.go: a test holds that, for every field.

// endpointPage is the answer of ListEndpoints.
type endpointPage struct {
	rows   []EndpointHealth
	next   string
	begins time.Time // start of the history, if that is after the time of the query; else zero
}

// transitionPage is the answer of ListTransitions.
type transitionPage struct {
	rows    []health.Transition
	next    string
	gaps    []Gap
	failing string
}

func (o *object) endpoints(p *endpointPage) {
	writeRows(o, "endpoints", p.rows, (*object).endpoint)
	o.string("nextPageToken", p.next)
	o.time("historyBegins", p.begins)
}

func (o *object) transitions(p *transitionPage) {
	writeRows(o, "transitions", p.rows, (*object).transition)
	o.string("nextPageToken", p.next)
	if len(p.gaps) > 0 {
		o.begin("missing")
		writeRows(o, "gaps", p.gaps, (*object).gap)
		o.end()
	}
	if p.failing != "" {
		o.string("failing", p.failing)
	}
}

func (o *object) availabilities(m *hdsdv1.ListAvailabilityResponse) {
	writeRows(o, "availability", m.GetAvailability(), func(o *object, m **hdsdv1.Availability) { o.availability(*m) })
	o.string("nextPageToken", m.GetNextPageToken())
}

func (o *object) endpoint(e *EndpointHealth) {
	v := &e.Verdict
	o.key(&e.Endpoint)
	o.status("health", v.Status)
	o.time("since", v.Since)
	o.string("reason", v.Reason)
	writeAgain(o, &o.observations, "observations", v.Observations, (*object).observation)
	if p := e.Published; p != nil {
		o.status("published", p.Status)
		o.string("publishedReason", p.Reason)
	}
	if e.Override != nil {
		o.begin("override")
		o.override(e.Override)
		o.end()
		o.status("voted", e.Voted.Status)
		o.string("votedReason", e.Voted.Reason)
	}
	writeAgain(o, &o.zones, "zones", shownZones(v.Zones), (*object).zone)
	o.bool("held", !e.HeldSince.IsZero())
	o.time("heldSince", e.HeldSince)
	if e.Hostname != "" {
		o.string("hostname", e.Hostname)
	}
	if e.Version != "" {
		o.string("version", e.Version)
	}
}

func (o *object) transition(t *health.Transition) {
	o.time("time", t.Time)
	o.key(&t.Endpoint)
	o.status("from", t.From)
	o.status("to", t.To)
	o.string("reason", t.Reason)
	writeAgain(o, &o.observations, "observations", t.Observations, (*object).observation)
}

func (o *object) key(e *health.Endpoint) {
	o.string("cluster", e.Cluster)
	o.string("address", e.Address)
	o.locality(e.Locality.Region, e.Locality.Zone, e.Locality.SubZone)
}

func (o *object) availability(m *hdsdv1.Availability) {
	o.string("cluster", m.GetCluster())
	o.string("address", m.GetAddress())
	if l := m.GetLocality(); l != nil {
		o.locality(l.GetRegion(), l.GetZone(), l.GetSubZone())
	}
	o.float("healthySeconds", m.GetHealthySeconds())
	o.float("unhealthySeconds", m.GetUnhealthySeconds())
	o.float("unknownSeconds", m.GetUnknownSeconds())
	o.float("degradedSeconds", m.GetDegradedSeconds())
	o.float("drainingSeconds", m.GetDrainingSeconds())
	o.optionalFloat("healthyRatio", m.HealthyRatio)
	o.number("transitions", m.GetTransitions())
	o.optionalString("checker", m.Checker)
	o.optionalFloat("budgetLeft", m.BudgetLeft)
}

func (o *object) observation(v *health.Observation) {
	o.string("checker", v.Checker)
	o.status("status", v.Status)
	if v.HTTPStatusCode != 0 {
		o.number("httpStatusCode", uint32(v.HTTPStatusCode))
	}
	o.time("time", v.Time)
	o.string("disbelieved", v.Disbelieved)
}

func (o *object) zone(z *health.ZoneVerdict) {
	o.string("region", z.Region)
	o.string("zone", z.Zone)
	o.status("health", z.Status)
	o.number("up", uint32(z.Up))
	o.number("down", uint32(z.Down))
}

func (o *object) override(v *Override) {
	o.key(&v.Scope)
	o.status("health", v.Status)
	o.string("reason", v.Reason)
	o.string("author", v.Author)
	o.time("since", v.Since)
	o.time("until", v.Until)
	o.number("endpoints", uint32(v.Endpoints))
	if v.Version != "" {
		o.string("version", v.Version)
	}
}

func (o *object) gap(g *Gap) {
	o.time("start", g.Start)
	o.time("end", g.End)
	o.number("transitions", uint32(min(g.Transitions, math.MaxUint32)))
}

func (o *object) locality(region, zone, subZone string) {
	o.begin("locality")
	o.string("region", region)
	o.string("zone", zone)
	o.string("subZone", subZone)
	o.end()
}
