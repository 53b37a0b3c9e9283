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

// completeEndpoint offers values for CLUSTER and ADDRESS from the coordinator. It
// offers nothing if the coordinator does not answer soon.
func (c *client) completeEndpoint(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
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
	query := hdsdv1.NewQueryClient(connection)
	var offers []string
	offer := func(value, about string) {
		if strings.HasPrefix(value, begun) {
			offers = append(offers, value+"\t"+about)
		}
	}
	if len(args) == 0 { // on an error there is nothing to offer
		answer, _ := query.ListClusters(ctx, &hdsdv1.ListClustersRequest{PageSize: pageSize})
		for _, k := range answer.GetClusters() {
			offer(k.GetName(), fmt.Sprintf("%d of %d healthy", k.GetHealthy(), k.GetEndpoints()))
		}
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
	answer, _ := query.ListEndpoints(ctx, &hdsdv1.ListEndpointsRequest{Cluster: args[0], PageSize: pageSize})
	for _, e := range answer.GetEndpoints() {
		offer(e.GetAddress(), e.GetHealth().String())
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}
