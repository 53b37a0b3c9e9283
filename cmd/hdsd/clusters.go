package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/table"
)

var clustersHeader = []string{"name", "source", "checked", "endpoints", "healthy", "unhealthy", "unknown", "mode", "overridden", "quarantined", "no_endpoints_reason", "timeout", "degraded", "draining", "held_endpoints", "exclusions", "rejected_reason", "cluster_version"}

// clusterColumns are those that fit on a line. HEALTHY, UNHEALTHY, DRAINING and UNKNOWN add up.
var clusterColumns = []string{"name", "cluster_version", "source", "endpoints", "healthy", "unhealthy", "draining", "unknown", "held_endpoints", "mode", "overridden", "exclusions"}

func newClusters() *cobra.Command {
	var c client
	c.empty = emptyTable{rows: "clusters", hint: "no source has any; 'hdsd source list' shows the sources"}
	command := &cobra.Command{
		Use:   "clusters",
		Short: "Show how many endpoints of each cluster are healthy, or unchecked",
		Long: `clusters shows the clusters, the worst first. HEALTHY counts DEGRADED too,
UNHEALTHY counts TIMEOUT; with DRAINING and UNKNOWN they add up to ENDPOINTS.
NOT CHECKED counts endpoints that should be checked and are not; -o wide says
why.`,
		Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			p, err := c.printer(command, clustersHeader, clusterColumns...)
			if err != nil {
				return err
			}
			return c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
				list := func(unhealthy bool) lister[*hdsdv1.Cluster] {
					return func(token string, size int32) ([]*hdsdv1.Cluster, string, error) {
						answer, err := query.ListClusters(ctx, &hdsdv1.ListClustersRequest{
							PageToken: token, PageSize: size, Unhealthy: unhealthy || c.filter.unhealthy, Locality: c.filter.locality,
						})
						return answer.GetClusters(), answer.GetNextPageToken(), err
					}
				}
				pages := list(false)
				if c.isTable() {
					pages = worstFirst(c.limit, list, (*hdsdv1.Cluster).GetName, worseCluster)
				}
				return printAll(p, c.limit, pages, clusterCells)
			})
		},
	}
	c.addFlags(command)
	return command
}

func clusterCells(c *hdsdv1.Cluster) []string {
	return []string{
		c.GetName(), c.GetSource(), strconv.FormatBool(c.GetChecked()), number(c.GetEndpoints()),
		number(c.GetHealthy()), number(c.GetUnhealthy()), number(c.GetUnknown()), c.GetMode().String(), number(c.GetOverridden()), quarantineCell(c.GetQuarantined()),
		c.GetNoEndpointsReason(), number(c.GetTimeout()), number(c.GetDegraded()), number(c.GetDraining()), number(c.GetHeld()), strconv.Itoa(notChecked(c)), c.GetRejectedReason(), c.GetVersion(),
	}
}

// worseCluster orders clusters by the share of endpoints that are down, then by how many are not
// healthy.
func worseCluster(a, b *hdsdv1.Cluster) int {
	downShare := func(k *hdsdv1.Cluster) float64 { return float64(k.GetUnhealthy()) / float64(max(k.GetEndpoints(), 1)) }
	return cmp.Or(cmp.Compare(downShare(b), downShare(a)), cmp.Compare(b.GetEndpoints()-b.GetHealthy(), a.GetEndpoints()-a.GetHealthy()), cmp.Compare(a.GetName(), b.GetName()))
}

func quarantineCell(quarantined []*hdsdv1.Quarantine) string {
	var parts []string
	for _, q := range quarantined {
		subject := q.GetAddress()
		if subject == "" {
			subject = "whole cluster"
		}
		parts = append(parts, subject+": "+q.GetReason())
	}
	return strings.Join(parts, table.LineBreak)
}

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// notChecked counts the endpoints of a cluster that ought to be checked and are not, or 1 if the
// cluster has none and is not checked.
func notChecked(c *hdsdv1.Cluster) int {
	if slices.ContainsFunc(c.GetQuarantined(), func(q *hdsdv1.Quarantine) bool { return q.GetAddress() == "" }) {
		return int(max(1, c.GetEndpoints()))
	}
	return len(c.GetQuarantined())
}
