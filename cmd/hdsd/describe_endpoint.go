package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"hdsd/coordinator/attention"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/table"
)

func describeEndpoint(ctx context.Context, d *describer, args []string) error {
	cluster, address := args[0], args[1]
	answer, err := d.ListEndpoints(ctx, &hdsdv1.ListEndpointsRequest{Cluster: cluster, Address: address, PageSize: pageSize})
	if err != nil {
		return err
	}
	all := answer.GetEndpoints()
	if len(all) == 0 {
		if _, removed := noEndpoints(ctx, d.QueryClient, cluster); removed != "" {
			return errors.New(removed)
		}
		what := cmp.Or(absence(ctx, d.QueryClient, cluster, address), "no such endpoint in "+cluster)
		past, err := d.ListTransitions(ctx, &hdsdv1.ListTransitionsRequest{Cluster: cluster, Address: address, PageSize: 1})
		if err == nil && len(past.GetTransitions()) > 0 {
			what += "; it had one: hdsd history " + attention.Quoted(cluster, address)
		}
		return errors.New(what)
	}
	if err := addAll(d.sheet, "endpoints", all); err != nil {
		return err
	}
	for i, e := range all {
		if i > 0 {
			d.text.WriteByte('\n')
		}
		d.endpoint(e)
	}
	if err := d.clusterOf(ctx, cluster); err != nil {
		return err
	}
	err = d.overrides(ctx, func(o *hdsdv1.Override) bool {
		for _, e := range all {
			if own := e.GetOverride(); own != nil && proto.Equal(own.GetLocality(), o.GetLocality()) && own.GetCluster() == o.GetCluster() && own.GetAddress() == o.GetAddress() {
				return true
			}
		}
		return o.GetCluster() == cluster && o.GetAddress() == address
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

// endpoint describes the health of an endpoint, and who says so.
func (d *describer) endpoint(e *hdsdv1.Endpoint) {
	d.line("endpoint", "%s of cluster %s", e.GetAddress(), e.GetCluster())
	if name := e.GetHostname(); name != "" {
		d.line("hostname", "%s", name)
	}
	if in := localityCell(e.GetLocality()); in != "" {
		d.line("locality", "%s", in)
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
	if why := o.GetDisbelieved(); why != "" {
		return text + "; not believed: " + why
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

// clusterOf describes what an endpoint's cluster has to do with it.
func (d *describer) clusterOf(ctx context.Context, name string) error {
	answer, err := d.ListClusters(ctx, &hdsdv1.ListClustersRequest{Cluster: name})
	if err != nil {
		return err
	}
	for _, k := range answer.GetClusters() {
		if k.GetName() != name {
			continue
		}
		d.line("cluster", "%s, from source %s: %s", name, k.GetSource(), clusterHealth(k))
		d.line("", "data planes get %s", publishing(k))
		d.lines("checks", "none: it is not checked", checkTexts(k.GetHealthChecks()))
		return addOne(d.sheet, "cluster", k)
	}
	return nil
}
