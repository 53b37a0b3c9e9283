package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

var watchHeader = []string{"time", "event", "cluster", "address", "locality", "from", "health", "observations", "reason"}

func newWatch() *cobra.Command {
	var c client
	command := &cobra.Command{
		Use:   "watch [CLUSTER [ADDRESS]]",
		Short: "Show the present health of endpoints, then each change as it happens",
		Long: `watch shows the present health of endpoints, then each change without a gap,
until it is interrupted or --limit lines were shown. As json, lines are shaped
as those of endpoints (with "health") and history (with "from" and "to").`,
		Example: "  hdsd watch\n  hdsd watch web -o json",
		Args:    endpointArgs,
		RunE: func(command *cobra.Command, args []string) error {
			p, err := c.printer(command, watchHeader)
			if err != nil {
				return err
			}
			cluster, address := c.about(args)
			request := &hdsdv1.WatchRequest{Cluster: cluster, Address: address}
			return c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				stream, err := query.Watch(ctx, request)
				if err != nil {
					return err
				}
				err = follow(stream, p, c.limit, func() { c.tellAbsence(ctx, query, command.ErrOrStderr()) })
				if command.Context().Err() != nil {
					return nil // interrupted, as it is meant to end
				}
				return err
			})
		},
	}
	c.addFlags(command)
	command.ValidArgsFunction = c.completeEndpoint
	return command
}

// follow shows what a stream brings until it ends. The present health is laid
// out together, then onSynced is called; changes are shown at once.
func follow(stream grpc.ServerStreamingClient[hdsdv1.WatchResponse], p printer, limit int, onSynced func()) error {
	synced := false
	for shown := 0; limit == 0 || shown < limit; {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(p.close(), err)
		}
		if message, cells := watchCells(event); message != nil {
			if err := p.row(message, cells); err != nil {
				return err
			}
			shown++
		}
		if event.GetSynced() != nil {
			synced = true
			onSynced()
		}
		if synced {
			if err := p.flush(); err != nil {
				return err
			}
		}
	}
	return p.close()
}

// watchCells gives the row of an event, nil where it has none.
func watchCells(event *hdsdv1.WatchResponse) (proto.Message, []string) {
	if e := event.GetEndpoint(); e != nil {
		return e, []string{
			timeCell(e.GetSince()), "endpoint", e.GetCluster(), e.GetAddress(), localityCell(e.GetLocality()), "", e.GetHealth().String(),
			observationsCell(e.GetObservations()), e.GetReason(),
		}
	}
	if t := event.GetTransition(); t != nil {
		return t, []string{
			timeCell(t.GetTime()), "transition", t.GetCluster(), t.GetAddress(), localityCell(t.GetLocality()), t.GetFrom().String(), t.GetTo().String(),
			observationsCell(t.GetObservations()), t.GetReason(),
		}
	}
	return nil, nil
}
