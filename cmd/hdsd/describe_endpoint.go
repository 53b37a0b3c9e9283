package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"hdsd/coordinator/attention"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/internal/table"
)

func describeEndpoint(ctx context.Context, d *describer, args []string) error {
	cluster, address := args[0], args[1]
	answer, err := d.ListEndpoints(ctx, &hdsdv1.ListEndpointsRequest{Cluster: cluster, Address: address, PageSize: pageSize})
	if err != nil {
		return err
	}
	endpoints := answer.GetEndpoints()
	if len(endpoints) == 0 {
		if _, removed := noEndpoints(ctx, d.QueryClient, cluster); removed != "" {
			return errors.New(removed)
		}
		problem := cmp.Or(absence(ctx, d.QueryClient, cluster, address), "no such endpoint in "+cluster)
		transitions, err := d.ListTransitions(ctx, &hdsdv1.ListTransitionsRequest{Cluster: cluster, Address: address, PageSize: 1})
		if err == nil && len(transitions.GetTransitions()) > 0 {
			problem += "; it had one: hdsd history " + attention.Quoted(cluster, address)
		}
		return errors.New(problem)
	}
	if err := addAll(d.sheet, "endpoints", endpoints); err != nil {
		return err
	}
	for i, e := range endpoints {
		if i > 0 {
			d.text.WriteByte('\n')
		}
		d.endpoint(e)
	}
	if err := d.clusterOf(ctx, cluster); err != nil {
		return err
	}
	err = d.overrides(ctx, func(o *hdsdv1.Override) bool {
		for _, e := range endpoints {
			if override := e.GetOverride(); override != nil && proto.Equal(override.GetLocality(), o.GetLocality()) && override.GetCluster() == o.GetCluster() && override.GetAddress() == o.GetAddress() {
				return true
			}
		}
		return o.GetAddress() == address && slices.ContainsFunc(endpoints, func(e *hdsdv1.Endpoint) bool { return appliesTo(o, e.GetCluster(), e.GetVersion()) })
	})
	if err != nil {
		return err
	}
	if err := d.changes(ctx, &hdsdv1.ListTransitionsRequest{Cluster: cluster, Address: address}, false); err != nil {
		return err
	}
	if err := d.availability(ctx, "", cluster, address); err != nil {
		return err
	}
	if err := d.holders(ctx, cluster); err != nil {
		return err
	}
	d.next("hdsd history --since 1d " + attention.Quoted(cluster, address))
	d.next(attention.Cluster(cluster))
	return nil
}

// endpoint describes the health of an endpoint, and its votes.
func (d *describer) endpoint(e *hdsdv1.Endpoint) {
	d.line("endpoint", "%s of cluster %s", e.GetAddress(), health.TitleOf(e.GetCluster(), e.GetVersion()))
	if name := e.GetHostname(); name != "" {
		d.line("hostname", "%s", name)
	}
	if locality := localityCell(e.GetLocality()); locality != "" {
		d.line("locality", "%s", locality)
	}
	if e.GetSince() == nil {
		d.line("health", "%s", e.GetHealth())
	} else {
		d.line("health", "%s since %s", e.GetHealth(), ago(e.GetSince()))
	}
	d.line("reason", "%s", cmp.Or(e.GetReason(), "none given"))
	if e.GetHeld() {
		d.line("HELD", "since %s: no believed vote stands behind it, so it stays what it was last", ago(e.GetHeldSince()))
	}
	switch {
	case e.Published != nil:
		d.line("published", "%s in its place: %s", e.GetPublished(), e.GetPublishedReason())
	case strings.Contains(e.GetReason(), "not published"):
		d.line("published", "no, see the reason")
	case e.Override != nil:
		d.line("published", "%s, the override by %s", e.GetHealth(), e.GetOverride().GetAuthor())
	default:
		d.line("published", "%s, the verdict", e.GetHealth())
	}
	if o := e.GetOverride(); o != nil {
		d.line("overridden", "%s", overrideLine(o))
		d.line("", "the votes alone say %s: %s", e.GetVoted(), e.GetVotedReason())
	}
	var votes []string
	for _, o := range e.GetObservations() {
		votes = append(votes, voteText(o))
	}
	d.lines("votes", "none", votes)
	var zones []string
	for _, z := range e.GetZones() {
		zones = append(zones, fmt.Sprintf("checkers in %s see %s: %d up, %d down", zoneName(z.GetRegion(), z.GetZone()), z.GetHealth(), z.GetUp(), z.GetDown()))
	}
	d.lines("zones", "", zones)
}

// voteText describes a vote.
func voteText(o *hdsdv1.Observation) string {
	text := fmt.Sprintf("%s says %s", o.GetChecker(), o.GetStatus())
	if o.HttpStatusCode != nil {
		text += fmt.Sprintf(" (code %d)", o.GetHttpStatusCode())
	}
	if o.GetTime() != nil {
		text += ", " + table.Ago(timeCell(o.GetTime()), now())
	}
	if reason := o.GetDisbelieved(); reason != "" {
		return text + "; not believed: " + reason
	}
	return text + "; believed"
}

// zoneName names the zone of a region, which may be empty.
func zoneName(region, zone string) string {
	if region == "" {
		return "zone " + zone
	}
	return region + "/" + zone
}

// clusterOf describes the effects of a cluster on its endpoint.
func (d *describer) clusterOf(ctx context.Context, name string) error {
	answer, err := d.ListClusters(ctx, &hdsdv1.ListClustersRequest{Cluster: name})
	if err != nil {
		return err
	}
	for _, k := range answer.GetClusters() {
		if k.GetName() != name {
			continue
		}
		d.line("cluster", "%s, from source %s: %s", clusterTitle(k), k.GetSource(), clusterHealth(k))
		d.line("", "data planes get %s", publishing(k))
		d.lines("checks", "none: it is not checked", checkTexts(k.GetHealthChecks()))
		return addOne(d.sheet, "cluster", k)
	}
	return nil
}
