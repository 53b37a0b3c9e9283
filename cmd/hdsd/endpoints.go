package main

import (
	"context"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

var endpointsHeader = []string{"cluster", "address", "locality", "health", "held", "held_since", "since", "observations", "reason", "published", "published_reason", "voted", "votes", "hostname", "cluster_version"}

// endpointColumns fit on a line.
var endpointColumns = []string{"cluster", "cluster_version", "address", "locality", "health", "held", "since", "votes", "published", "voted"}

func newEndpoints() *cobra.Command {
	var c client
	c.empty = emptyTable{rows: "endpoints", hint: "no source has any; 'hdsd source list' shows the sources, 'hdsd clusters' why one has none"}
	var wanted, asOf string
	command := &cobra.Command{
		Use:   "endpoints [CLUSTER [ADDRESS]]",
		Short: "Show the health of endpoints, now or earlier, and the votes",
		Long: `endpoints shows the health of endpoints, the worst first, now or with --as-of
earlier. VOTES 2/3: two of three votes count and agree. HELD: no vote that
counts stands behind the health. -o wide adds each vote and the reason.`,
		Example: "  hdsd endpoints\n  hdsd endpoints web --health UNHEALTHY\n  hdsd endpoints web 10.0.0.7:8080 -o json\n  hdsd endpoints --as-of 1h",
		Args:    endpointArgs,
		RunE: func(command *cobra.Command, args []string) error {
			cluster, address := c.subject(args)
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
			p, err := c.printer(command, endpointsHeader, endpointColumns...)
			if err != nil {
				return err
			}
			request.Locality = c.filter.locality
			return c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
				c.total = func() int { return c.endpointsOf(ctx, query) }
				list := func(unhealthy bool) lister[*hdsdv1.Endpoint] {
					return filtered(func(e *hdsdv1.Endpoint) bool { return c.filter.hasVote(e.GetObservations()) }, func(token string, size int32) ([]*hdsdv1.Endpoint, string, error) {
						request.PageToken, request.PageSize, request.Unhealthy = token, size, unhealthy || c.filter.unhealthy
						answer, err := query.ListEndpoints(ctx, request)
						if err == nil && answer.GetHistoryBegins() != nil {
							return nil, "", beforeHistory("as-of", asOf, answer.GetHistoryBegins())
						}
						return answer.GetEndpoints(), answer.GetNextPageToken(), err
					})
				}
				pages := list(false)
				if c.isTable() && wanted == "" {
					pages = worstFirst(c.limit, list, endpointKey, worse)
				}
				return printAll(p, c.limit, func(token string, size int32) ([]*hdsdv1.Endpoint, string, error) {
					items, next, err := pages(token, size)
					if err == nil && next == "" && len(items) == 0 {
						err = c.absent(ctx, query)
					}
					return items, next, err
				}, endpointCells)
			})
		},
	}
	c.addFlags(command)
	c.filter.addChecker(command, "endpoints with a vote")
	command.ValidArgsFunction = c.completeEndpoint
	command.Flags().StringVar(&wanted, "health", "", "only endpoints of exactly this `health`")
	completeWords(command, "health", "HEALTHY", "UNHEALTHY", "TIMEOUT", "UNKNOWN", "DEGRADED", "DRAINING")
	command.Flags().StringVar(&asOf, "as-of", "", "the health at this `time` instead of now ("+timeForms+")")
	completeWords(command, "as-of")
	return command
}

// heldCell marks health without a believed vote.
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
		timeCell(e.GetSince()), observationsCell(e.GetObservations()), e.GetReason(), published, e.GetPublishedReason(), voted, endpointVotes(e), e.GetHostname(), e.GetVersion(),
	}
}

// endpointVotes counts the votes for the health that they decide.
func endpointVotes(e *hdsdv1.Endpoint) string {
	if e.Voted != nil {
		return votesCell(e.GetVoted(), e.GetObservations())
	}
	return votesCell(e.GetHealth(), e.GetObservations())
}

// endpointKey identifies an endpoint.
func endpointKey(e *hdsdv1.Endpoint) string {
	return strings.Join([]string{e.GetCluster(), e.GetAddress(), localityCell(e.GetLocality())}, "\x00")
}

// endpointsOf counts the endpoints of the requested cluster, or all; below 0 if unknown.
func (c *client) endpointsOf(ctx context.Context, query hdsdv1.QueryClient) int {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if c.cluster != "" {
		answer, err := query.ListClusters(ctx, &hdsdv1.ListClustersRequest{Cluster: c.cluster})
		if err != nil || len(answer.GetClusters()) == 0 {
			return -1
		}
		total := 0 // of all versions
		for _, k := range answer.GetClusters() {
			total += int(k.GetEndpoints())
		}
		return total
	}
	now, err := query.GetStatus(ctx, &hdsdv1.GetStatusRequest{})
	e := now.GetEndpoints()
	if err != nil || e == nil {
		return -1
	}
	return int(e.GetHealthy() + e.GetUnhealthy() + e.GetDraining() + e.GetUnknown())
}
