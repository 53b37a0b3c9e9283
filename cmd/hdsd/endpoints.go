package main

import (
	"context"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

var endpointsHeader = []string{"cluster", "address", "locality", "health", "held", "held_since", "since", "observations", "reason", "published", "published_reason", "voted"}

func newEndpoints() *cobra.Command {
	var c client
	var wanted, asOf string
	command := &cobra.Command{
		Use:     "endpoints [CLUSTER [ADDRESS]]",
		Short:   "Show the health of endpoints, now or at an earlier time, and the votes behind it",
		Example: "  hdsd endpoints\n  hdsd endpoints web --health UNHEALTHY\n  hdsd endpoints web 10.0.0.7:8080 -o json\n  hdsd endpoints --as-of 1h",
		Args:    endpointArgs,
		RunE: func(command *cobra.Command, args []string) error {
			cluster, address := c.about(args)
			request := &hdsdv1.ListEndpointsRequest{Cluster: cluster, Address: address}
			if wanted != "" {
				value, ok := corev3.HealthStatus_value[strings.ToUpper(wanted)]
				if !ok {
					return usageError{fmt.Errorf("--health %q: want UNKNOWN, HEALTHY, UNHEALTHY, DRAINING, TIMEOUT or DEGRADED", wanted)}
				}
				request.Health = corev3.HealthStatus(value).Enum()
			}
			var err error
			if request.AsOf, err = parseTime("as-of", asOf, now()); err != nil {
				return err
			}
			p, err := c.printer(command, endpointsHeader)
			if err != nil {
				return err
			}
			request.Unhealthy, request.Locality = c.filter.unhealthy, c.filter.locality
			return c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
				return printAll(p, c.limit, func(token string, size int32) ([]*hdsdv1.Endpoint, string, error) {
					request.PageToken, request.PageSize = token, size
					answer, err := query.ListEndpoints(ctx, request)
					if err == nil && len(answer.GetEndpoints()) == 0 {
						err = c.absent(ctx, query)
					}
					return answer.GetEndpoints(), answer.GetNextPageToken(), err
				}, endpointCells)
			})
		},
	}
	c.addFlags(command)
	command.ValidArgsFunction = c.completeEndpoint
	command.Flags().StringVar(&wanted, "health", "", "only endpoints of exactly this `health`")
	completeWords(command, "health", "HEALTHY", "UNHEALTHY", "TIMEOUT", "UNKNOWN", "DEGRADED", "DRAINING")
	command.Flags().StringVar(&asOf, "as-of", "", "the health at this `time` instead of now ("+timeForms+")")
	completeWords(command, "as-of")
	return command
}

// heldCell marks health that no believed vote stands behind.
func heldCell(e *hdsdv1.Endpoint) string {
	if e.GetHeld() {
		return "HELD"
	}
	return ""
}

func endpointCells(e *hdsdv1.Endpoint) []string {
	published, voted := "", ""
	if e.Published != nil {
		published = e.GetPublished().String()
	}
	if e.Voted != nil {
		voted = e.GetVoted().String()
	}
	return []string{
		e.GetCluster(), e.GetAddress(), localityCell(e.GetLocality()), e.GetHealth().String(), heldCell(e), timeCell(e.GetHeldSince()),
		timeCell(e.GetSince()), observationsCell(e.GetObservations()), e.GetReason(), published, e.GetPublishedReason(), voted,
	}
}
