package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/table"
)

var clustersHeader = []string{"name", "source", "checked", "endpoints", "healthy", "unhealthy", "unknown", "mode", "overridden", "quarantined", "no_endpoints_reason"}

func newClusters() *cobra.Command {
	var c client
	command := &cobra.Command{
		Use:   "clusters",
		Short: "Show the clusters, how many endpoints are healthy, and what is not checked and why",
		Args:  noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			p, err := c.printer(command, clustersHeader)
			if err != nil {
				return err
			}
			return c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
				return printAll(p, c.limit, func(token string, size int32) ([]*hdsdv1.Cluster, string, error) {
					answer, err := query.ListClusters(ctx, &hdsdv1.ListClustersRequest{PageToken: token, PageSize: size, Unhealthy: c.filter.unhealthy, Locality: c.filter.locality})
					return answer.GetClusters(), answer.GetNextPageToken(), err
				}, clusterCells)
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
		c.GetNoEndpointsReason(),
	}
}

func quarantineCell(quarantined []*hdsdv1.Quarantine) string {
	var out []string
	for _, q := range quarantined {
		what := q.GetAddress()
		if what == "" {
			what = "whole cluster"
		}
		out = append(out, what+": "+q.GetReason())
	}
	return strings.Join(out, table.LineBreak)
}

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
