package main

import (
	"context"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

var watchHeader = []string{"time", "event", "cluster", "address", "locality", "from", "health", "held", "observations", "reason", "votes", "cluster_version"}

// watchColumns fit on a line.
var watchColumns = []string{"time", "event", "cluster", "cluster_version", "address", "locality", "from", "health", "held", "votes"}

func newWatch() *cobra.Command {
	var c client
	command := &cobra.Command{
		Use:   "watch [CLUSTER [ADDRESS]]",
		Short: "Show the health of endpoints, then each change as it happens",
		Long: `watch shows the present health of endpoints, then each change without a gap,
until it is interrupted or --limit lines were shown. When hdsd is restarted, it
goes on where it was, and says so on standard error. As json, lines are shaped
as those of endpoints (with "health") and history (with "from" and "to").`,
		Example: "  hdsd watch\n  hdsd watch web -o json",
		Args:    endpointArgs,
		RunE: func(command *cobra.Command, args []string) error {
			c.live = true
			p, err := c.printer(command, watchHeader, watchColumns...)
			if err != nil {
				return err
			}
			cluster, address := c.subject(args)
			return c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
				f := &follower{
					client: &c, query: query, printer: p, tell: command.ErrOrStderr(),
					request: &hdsdv1.WatchRequest{Cluster: cluster, Address: address, Unhealthy: c.filter.unhealthy, Locality: c.filter.locality},
				}
				return f.run(ctx)
			})
		},
	}
	c.addFlags(command)
	c.filter.addChecker(command, "endpoints and changes with a vote")
	command.ValidArgsFunction = c.completeEndpoint
	return command
}

// watchCells returns the row of an event, nil if it has none or the filter omits it.
func (f *filter) watchCells(event *hdsdv1.WatchResponse) (proto.Message, []string) {
	if e := event.GetEndpoint(); e != nil && f.hasVote(e.GetObservations()) {
		return e, []string{
			timeCell(e.GetSince()), "endpoint", e.GetCluster(), e.GetAddress(), localityCell(e.GetLocality()), "", e.GetHealth().String(), heldCell(e),
			observationsCell(e.GetObservations()), e.GetReason(), endpointVotes(e), e.GetVersion(),
		}
	}
	if t := event.GetTransition(); t != nil && f.hasVote(t.GetObservations()) {
		return t, []string{
			timeCell(t.GetTime()), "transition", t.GetCluster(), t.GetAddress(), localityCell(t.GetLocality()), t.GetFrom().String(), t.GetTo().String(), "",
			observationsCell(t.GetObservations()), t.GetReason(), votesCell(t.GetTo(), t.GetObservations()), versionCell(t.GetCluster()),
		}
	}
	return nil, nil
}
