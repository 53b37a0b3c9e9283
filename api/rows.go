package api

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// The messages of long lists, field by field in the order of their definition. A test
// holds that none is missing.

func (o *object) endpoints(m *hdsdv1.ListEndpointsResponse) {
	writeList(o, "endpoints", m.GetEndpoints(), (*object).endpoint)
	o.string("nextPageToken", m.GetNextPageToken())
}

func (o *object) transitions(m *hdsdv1.ListTransitionsResponse) {
	writeList(o, "transitions", m.GetTransitions(), (*object).transition)
	o.string("nextPageToken", m.GetNextPageToken())
	writeField(o, "missing", m.GetMissing(), func(o *object, m *hdsdv1.Missing) {
		writeList(o, "gaps", m.GetGaps(), (*object).gap)
	})
	o.optionalString("failing", m.Failing)
}

func (o *object) availabilities(m *hdsdv1.ListAvailabilityResponse) {
	writeList(o, "availability", m.GetAvailability(), (*object).availability)
	o.string("nextPageToken", m.GetNextPageToken())
}

func (o *object) endpoint(m *hdsdv1.Endpoint) {
	o.string("cluster", m.GetCluster())
	o.string("address", m.GetAddress())
	writeField(o, "locality", m.GetLocality(), (*object).locality)
	o.status("health", m.GetHealth())
	o.time("since", m.GetSince())
	o.string("reason", m.GetReason())
	writeList(o, "observations", m.GetObservations(), (*object).observation)
	o.optionalStatus("published", m.Published)
	o.optionalString("publishedReason", m.PublishedReason)
	writeField(o, "override", m.GetOverride(), (*object).override)
	o.optionalStatus("voted", m.Voted)
	o.optionalString("votedReason", m.VotedReason)
	writeList(o, "zones", m.GetZones(), (*object).zone)
	o.bool("held", m.GetHeld())
	o.time("heldSince", m.GetHeldSince())
}

func (o *object) transition(m *hdsdv1.Transition) {
	o.time("time", m.GetTime())
	o.string("cluster", m.GetCluster())
	o.string("address", m.GetAddress())
	writeField(o, "locality", m.GetLocality(), (*object).locality)
	o.status("from", m.GetFrom())
	o.status("to", m.GetTo())
	o.string("reason", m.GetReason())
	writeList(o, "observations", m.GetObservations(), (*object).observation)
}

func (o *object) availability(m *hdsdv1.Availability) {
	o.string("cluster", m.GetCluster())
	o.string("address", m.GetAddress())
	writeField(o, "locality", m.GetLocality(), (*object).locality)
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

func (o *object) observation(m *hdsdv1.Observation) {
	o.string("checker", m.GetChecker())
	o.status("status", m.GetStatus())
	o.optionalNumber("httpStatusCode", m.HttpStatusCode)
	o.time("time", m.GetTime())
	o.string("disbelieved", m.GetDisbelieved())
}

func (o *object) zone(m *hdsdv1.ZoneHealth) {
	o.string("region", m.GetRegion())
	o.string("zone", m.GetZone())
	o.status("health", m.GetHealth())
	o.number("up", m.GetUp())
	o.number("down", m.GetDown())
}

func (o *object) override(m *hdsdv1.Override) {
	o.string("cluster", m.GetCluster())
	o.string("address", m.GetAddress())
	writeField(o, "locality", m.GetLocality(), (*object).locality)
	o.status("health", m.GetHealth())
	o.string("reason", m.GetReason())
	o.string("author", m.GetAuthor())
	o.time("since", m.GetSince())
	o.time("until", m.GetUntil())
	o.number("endpoints", m.GetEndpoints())
}

func (o *object) gap(m *hdsdv1.Gap) {
	o.time("start", m.GetStart())
	o.time("end", m.GetEnd())
	o.number("transitions", m.GetTransitions())
}

func (o *object) locality(m *corev3.Locality) {
	o.string("region", m.GetRegion())
	o.string("zone", m.GetZone())
	o.string("subZone", m.GetSubZone())
}
