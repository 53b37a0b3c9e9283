package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/coordinator/attention"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/internal/table"
)

// mostZoned bounds the endpoints of a cluster that are counted by zone.
const mostZoned = 10_000

func describeCluster(ctx context.Context, d *describer, args []string) error {
	name := args[0]
	found, err := d.ListClusters(ctx, &hdsdv1.ListClustersRequest{Cluster: name})
	if err != nil {
		return err
	}
	index := slices.IndexFunc(found.GetClusters(), func(k *hdsdv1.Cluster) bool { return k.GetName() == name })
	if index < 0 {
		return errors.New(removalText(name, found.GetRemoved()))
	}
	k := found.GetClusters()[index]
	d.line("cluster", "%s, from source %s", clusterTitle(k), k.GetSource())
	if reason := k.GetRejectedReason(); reason != "" {
		d.line("", "hdsd refuses its latest version, and uses the one before: %s", reason)
	}
	d.line("health", "%s", clusterHealth(k))
	d.line("published", "%s", publishing(k))
	if k.GetHeld() > 0 {
		d.line("HELD", "health of %s is held: no believed vote stands behind it", plural(int(k.GetHeld()), "endpoint"))
	}
	if reason := k.GetPanicReason(); reason != "" {
		d.line("PANIC", "%s", reason)
	}
	if reason := k.GetNoEndpointsReason(); reason != "" {
		d.line("", "it has no endpoints: %s", reason)
	}
	d.versions(slices.Delete(slices.Clone(found.GetClusters()), index, index+1))
	if err := addOne(d.sheet, "cluster", k); err != nil {
		return err
	}
	if err := d.zones(ctx, k); err != nil {
		return err
	}
	d.lines("checks", "none: it is not checked", checkTexts(k.GetHealthChecks()))
	var parts []string
	for i, q := range k.GetQuarantined() {
		if i == latestOf {
			parts = append(parts, fmt.Sprintf("and %d more: hdsd clusters -o json", len(k.GetQuarantined())-i))
			break
		}
		parts = append(parts, cmp.Or(q.GetAddress(), "the whole cluster")+": "+q.GetReason())
	}
	d.lines("not checked", "", parts)
	err = d.overrides(ctx, func(o *hdsdv1.Override) bool { return o.GetCluster() == "" || appliesTo(o, name, k.GetVersion()) })
	if err != nil {
		return err
	}
	if err := d.troubled(ctx, k); err != nil {
		return err
	}
	if err := d.changes(ctx, &hdsdv1.ListTransitionsRequest{Cluster: name}, true); err != nil {
		return err
	}
	if err := d.availability(ctx, "cluster", name, ""); err != nil {
		return err
	}
	if err := d.holders(ctx, name); err != nil {
		return err
	}
	if err := d.incidents(ctx, name); err != nil {
		return err
	}
	d.next("hdsd history --since 1h " + attention.Quoted(name))
	return nil
}

// clusterTitle returns a cluster's name for people.
func clusterTitle(k *hdsdv1.Cluster) string { return health.TitleOf(k.GetName(), k.GetVersion()) }

// appliesTo reports whether an override is for a cluster, or for all versions of it.
func appliesTo(o *hdsdv1.Override, name, version string) bool {
	return o.GetCluster() == name || o.GetCluster() == health.ClusterOf(name, version)
}

// versions describes the other versions of a cluster.
func (d *describer) versions(others []*hdsdv1.Cluster) {
	var names []string
	for _, k := range others {
		names = append(names, fmt.Sprintf("%s: %s", clusterTitle(k), clusterHealth(k)))
		d.next(attention.Cluster(k.GetName()))
	}
	d.lines("others", "", names)
}

// clusterHealth describes the health of a cluster.
func clusterHealth(k *hdsdv1.Cluster) string {
	parts := []string{fmt.Sprintf("%d of %s healthy%s", k.GetHealthy(), plural(int(k.GetEndpoints()), "endpoint"), portion(k.GetDegraded(), "degraded"))}
	for _, n := range []struct {
		count uint32
		label string
	}{
		{k.GetUnhealthy(), "unhealthy" + portion(k.GetTimeout(), "timeout")}, {k.GetDraining(), "draining"}, {k.GetUnknown(), "unknown"},
	} {
		if n.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n.count, n.label))
		}
	}
	return strings.Join(parts, ", ")
}

// publishing describes the published health of a cluster.
func publishing(k *hdsdv1.Cluster) string {
	switch {
	case k.GetMode() == hdsdv1.Cluster_SHADOW:
		return "what the sources say: hdsd is in shadow mode for it"
	case k.GetMode() == hdsdv1.Cluster_FROZEN:
		return "what the sources say: hdsd is frozen"
	case !k.GetChecked():
		return "what the sources say: hdsd does not check it"
	}
	return "the verdicts"
}

// zones describes the health of a cluster by region and zone.
func (d *describer) zones(ctx context.Context, k *hdsdv1.Cluster) error {
	if k.GetEndpoints() > mostZoned {
		d.line("zones", "too many endpoints to count here; --locality REGION/ZONE of hdsd endpoints shows those of one")
		return nil
	}
	type zone struct {
		Zone      string `json:"zone"`
		Endpoints int    `json:"endpoints"`
		Healthy   int    `json:"healthy"`
	}
	byZone := map[string]*zone{}
	for token := ""; ; {
		answer, err := d.ListEndpoints(ctx, &hdsdv1.ListEndpointsRequest{Cluster: k.GetName(), PageSize: pageSize, PageToken: token})
		if err != nil {
			return err
		}
		for _, e := range answer.GetEndpoints() {
			if e.GetCluster() != k.GetName() {
				continue // of another version
			}
			name := zoneCell(e.GetLocality())
			if byZone[name] == nil {
				byZone[name] = &zone{Zone: name}
			}
			byZone[name].Endpoints++
			if isUp(e.GetHealth()) {
				byZone[name].Healthy++
			}
		}
		if token = answer.GetNextPageToken(); token == "" {
			break
		}
	}
	zones := make([]*zone, 0, len(byZone))
	for _, z := range byZone {
		zones = append(zones, z)
	}
	slices.SortFunc(zones, func(a, b *zone) int {
		return cmp.Or(cmp.Compare(a.Healthy*b.Endpoints, b.Healthy*a.Endpoints), cmp.Compare(a.Zone, b.Zone))
	})
	var texts []string
	for _, z := range zones {
		texts = append(texts, fmt.Sprintf("%s: %d of %d healthy", cmp.Or(strings.Trim(z.Zone, "/"), "no zone"), z.Healthy, z.Endpoints))
	}
	d.lines("zones", "", texts)
	return d.addValue("zones", zones)
}

// isUp reports whether an endpoint of a health takes traffic.
func isUp(h corev3.HealthStatus) bool {
	return h == corev3.HealthStatus_HEALTHY || h == corev3.HealthStatus_DEGRADED
}

// zoneCell returns a region and a zone in the form of --locality.
func zoneCell(l *corev3.Locality) string { return l.GetRegion() + "/" + l.GetZone() }

// troubled describes the endpoints of a cluster that are not healthy, worst first.
func (d *describer) troubled(ctx context.Context, k *hdsdv1.Cluster) error {
	answer, err := d.ListEndpoints(ctx, &hdsdv1.ListEndpointsRequest{Cluster: k.GetName(), Unhealthy: true, PageSize: pageSize})
	if err != nil {
		return err
	}
	endpoints := slices.DeleteFunc(answer.GetEndpoints(), func(e *hdsdv1.Endpoint) bool {
		return isUp(e.GetHealth()) || e.GetCluster() != k.GetName() // of another version
	})
	slices.SortStableFunc(endpoints, worse)
	var texts []string
	for i, e := range endpoints {
		if i == latestOf {
			texts = append(texts, fmt.Sprintf("and %d more: hdsd endpoints --unhealthy %s", max(len(endpoints), int(k.GetEndpoints()-k.GetHealthy()))-i, attention.Quoted(k.GetName())))
			break
		}
		sinceText := ""
		if e.GetSince() != nil {
			sinceText = ", " + table.Ago(timeCell(e.GetSince()), now())
		}
		if e.GetHeld() {
			sinceText += ", HELD"
		}
		texts = append(texts, fmt.Sprintf("%s %s%s: %s", e.GetAddress(), e.GetHealth(), sinceText, e.GetReason()))
	}
	d.lines("not healthy", "no endpoint", texts)
	for _, e := range endpoints[:min(len(endpoints), 1)] {
		d.next(attention.Endpoint(e.GetCluster(), e.GetAddress()))
	}
	return addAll(d.sheet, "unhealthy", endpoints[:min(len(endpoints), latestOf)])
}

// badness orders healths, the worst first.
var badness = map[corev3.HealthStatus]int{
	corev3.HealthStatus_UNHEALTHY: -6, corev3.HealthStatus_TIMEOUT: -5, corev3.HealthStatus_UNKNOWN: -4,
	corev3.HealthStatus_DRAINING: -3, corev3.HealthStatus_DEGRADED: -2, corev3.HealthStatus_HEALTHY: -1,
}

// worse orders endpoints, the worst first.
func worse(a, b *hdsdv1.Endpoint) int {
	return cmp.Compare(badness[a.GetHealth()], badness[b.GetHealth()])
}

// incidents describes the present incidents of a cluster.
func (d *describer) incidents(ctx context.Context, cluster string) error {
	answer, err := d.ListIncidents(ctx, &hdsdv1.ListIncidentsRequest{Cluster: cluster, Open: new(true), PageSize: latestOf})
	if err != nil {
		return err
	}
	var texts []string
	for _, i := range answer.GetIncidents() {
		texts = append(texts, i.GetSummary())
		d.next("hdsd describe incident " + attention.Quoted(i.GetId()))
	}
	d.lines("incidents", "", texts)
	return addAll(d.sheet, "incidents", answer.GetIncidents())
}

// checkTexts describes health checks: the kind, then all settings.
func checkTexts(checks []*structpb.Struct) []string {
	var texts []string
	for _, check := range checks {
		kind, settings := "", []string{}
		for name, value := range check.GetFields() {
			if prefix, ok := strings.CutSuffix(name, "HealthCheck"); ok {
				kind = strings.ToUpper(prefix)
				for inner, v := range value.GetStructValue().GetFields() {
					settings = append(settings, inner+"="+settingText(v))
				}
				continue
			}
			settings = append(settings, name+"="+settingText(value))
		}
		slices.Sort(settings)
		texts = append(texts, strings.TrimSpace(kind+" "+strings.Join(settings, " ")))
	}
	return texts
}

// settingText writes a value as JSON, a duration in people's form.
func settingText(v *structpb.Value) string {
	text := v.GetStringValue()
	if d, err := time.ParseDuration(text); err == nil && strings.HasSuffix(text, "s") {
		return d.String()
	}
	if text != "" && !strings.ContainsAny(text, " \t\"") {
		return text
	}
	encoded, err := json.Marshal(v.AsInterface())
	if err != nil {
		return "?"
	}
	return string(encoded)
}
