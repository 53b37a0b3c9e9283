package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"hdsd/coordinator/attention"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

func describeIncident(ctx context.Context, d *describer, args []string) error {
	answer, err := d.ListIncidents(ctx, &hdsdv1.ListIncidentsRequest{Id: args[0]})
	if err != nil {
		return err
	}
	if len(answer.GetIncidents()) == 0 || answer.GetIncidents()[0].GetId() != args[0] {
		return fmt.Errorf("no incident %q is known: 'hdsd incidents' lists all that the history reaches back to", args[0])
	}
	i := answer.GetIncidents()[0]
	d.line("incident", "%s: %s", i.GetId(), i.GetSummary())
	d.line("began", "%s", ago(i.GetStart()))
	if i.GetEnd() == nil {
		d.line("ended", "it goes on")
	} else {
		d.line("ended", "%s, after %s", ago(i.GetEnd()), i.GetEnd().AsTime().Sub(i.GetStart().AsTime()).Round(time.Second))
	}
	d.line("likely cause", "%s", causeText(i.GetCause()))
	d.line("endpoints", "%d went down, %d of them are down still", i.GetEndpoints(), i.GetDown())
	d.line("clusters", "%s", someNames(i.GetClusters()))
	if len(i.GetZones()) > 0 {
		d.line("zones", "%s", someNames(i.GetZones()))
	}
	if t := i.GetFirst(); t != nil {
		d.line("first", "%s %s went from %s to %s: %s", health.TitleOf(t.GetCluster(), versionCell(t.GetCluster())), t.GetAddress(), t.GetFrom(), t.GetTo(), t.GetReason())
		var votes []string
		for _, o := range t.GetObservations() {
			votes = append(votes, voteText(o))
		}
		d.lines("votes then", "", votes)
		d.next(attention.Endpoint(t.GetCluster(), t.GetAddress()))
	}
	if err := addOne(d.sheet, "incident", i); err != nil {
		return err
	}
	r := &hdsdv1.ListTransitionsRequest{StartTime: i.GetStart()}
	endText := ""
	if i.GetEnd() != nil {
		end := i.GetEnd().AsTime().Add(time.Second) // the change that ended it
		r.EndTime, endText = timestamppb.New(end), " --until "+end.UTC().Format(time.RFC3339)
	}
	if len(i.GetClusters()) == 1 {
		r.Cluster = i.GetClusters()[0]
		d.next(attention.Cluster(r.GetCluster()))
	}
	d.next(strings.TrimSuffix(fmt.Sprintf("hdsd history --since %s%s %s", i.GetStart().AsTime().UTC().Format(time.RFC3339), endText, quotedUnless(r.GetCluster())), " "))
	return d.changes(ctx, r, true)
}

// quotedUnless quotes a name, unless it is empty.
func quotedUnless(name string) string {
	if name == "" {
		return ""
	}
	return attention.Quoted(name)
}

// causeText describes the place of an incident.
func causeText(c hdsdv1.Incident_Cause) string {
	return map[hdsdv1.Incident_Cause]string{
		hdsdv1.Incident_ENDPOINT: "ENDPOINT: one endpoint, or one host", hdsdv1.Incident_CLUSTER: "CLUSTER: several endpoints of one cluster",
		hdsdv1.Incident_ZONE: "ZONE: several clusters in one zone", hdsdv1.Incident_OPERATOR: "OPERATOR: an override began it",
		hdsdv1.Incident_SEVERAL: "SEVERAL: several clusters in several zones",
		hdsdv1.Incident_NETWORK: "NETWORK: a path to the zone in which it began was cut", hdsdv1.Incident_CHECKERS: "CHECKERS: those that saw it begin were doubted",
	}[c]
}
