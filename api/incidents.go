package api

import (
	"context"
	"fmt"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/incident"
)

// causes are the names of the causes of incidents.
var causes = map[incident.Cause]hdsdv1.Incident_Cause{
	incident.Endpoint: hdsdv1.Incident_ENDPOINT, incident.Cluster: hdsdv1.Incident_CLUSTER, incident.Zone: hdsdv1.Incident_ZONE,
	incident.Operator: hdsdv1.Incident_OPERATOR, incident.Several: hdsdv1.Incident_SEVERAL,
	incident.Network: hdsdv1.Incident_NETWORK, incident.Checkers: hdsdv1.Incident_CHECKERS,
}

// IncidentQuery narrows a list of incidents.
type IncidentQuery struct {
	incident.Query
	AllowPartial bool // do not wait until the history is read
}

// IncidentPage is a page of incidents.
type IncidentPage struct {
	Incidents []incident.Incident
	More      bool
	Partial   bool // the history is still being read
}

// ListIncidents returns changes of health grouped by time and place.
func (s *Service) ListIncidents(ctx context.Context, r *hdsdv1.ListIncidentsRequest) (*hdsdv1.ListIncidentsResponse, error) {
	limit, err := pageSize(r.GetPageSize())
	if err != nil {
		return nil, err
	}
	query := IncidentQuery{
		Query:        incident.Query{Cluster: r.GetCluster(), ID: r.GetId(), Open: r.Open, Limit: limit},
		AllowPartial: r.GetAllowPartial(),
	}
	if query.Start, query.End, err = period(r); err != nil {
		return nil, err
	}
	question := fmt.Sprintf("incidents %q %q %v %v %t %t", query.Cluster, query.ID, query.Start, query.End, r.Open != nil, r.GetOpen())
	if r.GetPageToken() != "" {
		query.After = new(incident.Position)
		if err := decodeToken(question, r.GetPageToken(), query.After); err != nil {
			return nil, grpcError(err)
		}
	}
	found, err := s.backend.Incidents(ctx, query)
	if err != nil {
		return nil, grpcError(err)
	}
	answer := &hdsdv1.ListIncidentsResponse{Incidents: convertList(found.Incidents, incidentMessage), Partial: found.Partial}
	if found.More {
		last := &found.Incidents[len(found.Incidents)-1]
		answer.NextPageToken, err = encodeToken(question, incident.Position{Start: last.Start, ID: last.ID})
	}
	return answer, grpcError(err)
}

func incidentMessage(i incident.Incident) *hdsdv1.Incident {
	m := &hdsdv1.Incident{
		Id: i.ID, Start: timeMessage(i.Start), Cause: causes[i.Cause], Clusters: i.Clusters, Zones: i.Zones,
		Endpoints: uint32(i.Endpoints), Down: uint32(i.Down), First: transitionMessage(i.First), Summary: i.Summary(),
	}
	if !i.End.IsZero() {
		m.End = timeMessage(i.End)
	}
	return m
}
