package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

var incidentHeader = []string{"start", "end", "cause", "endpoints", "down", "clusters", "zones", "id", "summary"}

// incidentColumns are those that fit on a line.
var incidentColumns = []string{"start", "end", "cause", "endpoints", "down", "clusters", "id"}

func newIncidents() *cobra.Command {
	var c client
	var since, until string
	var open bool
	command := &cobra.Command{
		Use:   "incidents [CLUSTER]",
		Short: "Show outages: endpoints that went down together",
		Long: `incidents groups the recorded changes of health: endpoints that went down within a
minute of each other, in one cluster or one zone, are one incident. It is over when
none of them is down. Those that began last come first.`,
		Example: "  hdsd incidents --since 7d\n  hdsd incidents web --open",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("incidents takes at most one argument, CLUSTER, but was given %q", strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			request := &hdsdv1.ListIncidentsRequest{Cluster: strings.Join(args, "")}
			if open {
				request.Open = &open
			}
			var err error
			if request.StartTime, request.EndTime, err = parsePeriod(since, until, now()); err != nil {
				return err
			}
			p, err := c.printer(command, incidentHeader, incidentColumns...)
			if err != nil {
				return err
			}
			return c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
				return printAll(p, c.limit, only(func(i *hdsdv1.Incident) bool {
					return c.filter.hasZone(i.GetZones()) && (!c.filter.unhealthy || i.GetEnd() == nil)
				}, func(token string, size int32) ([]*hdsdv1.Incident, string, error) {
					request.PageToken, request.PageSize = token, size
					answer, err := query.ListIncidents(ctx, request)
					return answer.GetIncidents(), answer.GetNextPageToken(), err
				}), incidentCells)
			})
		},
	}
	c.addFlags(command)
	command.ValidArgsFunction = c.completeEndpoint
	command.Flags().StringVar(&since, "since", "", "that went on at or after this `time` ("+timeForms+"; default: all of the history)")
	command.Flags().StringVar(&until, "until", "", "that began before this `time` (as --since; default: now)")
	command.Flags().BoolVar(&open, "open", false, "only those that go on")
	completeWords(command, "since")
	completeWords(command, "until")
	return command
}

func incidentCells(i *hdsdv1.Incident) []string {
	end := ""
	if i.GetEnd() != nil {
		end = timeCell(i.GetEnd())
	}
	return []string{
		timeCell(i.GetStart()), end, i.GetCause().String(), number(i.GetEndpoints()), number(i.GetDown()),
		strings.Join(i.GetClusters(), " "), strings.Join(i.GetZones(), " "), i.GetId(), i.GetSummary(),
	}
}
