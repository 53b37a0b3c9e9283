package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// completionTimeout is how long a shell may wait for names.
var completionTimeout = time.Second

// complete offers what the coordinator has that begins with begun. It offers nothing if the
// coordinator does not answer soon: on an error, ask has nothing to offer.
func (c *client) complete(command *cobra.Command, begun string, ask func(_ context.Context, _ hdsdv1.QueryClient, offer func(value, description string))) ([]string, cobra.ShellCompDirective) {
	if useContext(command) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	connection, err := c.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
	defer cancel()
	var offers []string
	ask(ctx, hdsdv1.NewQueryClient(connection), func(value, description string) {
		if strings.HasPrefix(value, begun) {
			offers = append(offers, value+"\t"+description)
		}
	})
	return offers, cobra.ShellCompDirectiveNoFileComp
}

// completeEndpoint offers values for CLUSTER and ADDRESS.
func (c *client) completeEndpoint(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.complete(command, begun, func(ctx context.Context, query hdsdv1.QueryClient, offer func(value, description string)) {
		if len(args) == 0 {
			answer, _ := query.ListClusters(ctx, &hdsdv1.ListClustersRequest{PageSize: pageSize})
			for _, k := range answer.GetClusters() {
				offer(k.GetName(), fmt.Sprintf("%d of %d healthy", k.GetHealthy(), k.GetEndpoints()))
			}
			return
		}
		answer, _ := query.ListEndpoints(ctx, &hdsdv1.ListEndpointsRequest{Cluster: args[0], PageSize: pageSize})
		for _, e := range answer.GetEndpoints() {
			offer(e.GetAddress(), e.GetHealth().String())
		}
	})
}
