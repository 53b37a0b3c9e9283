package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

var incidentHeader = []string{"start", "end", "cause", "endpoints", "down", "clusters", "zones", "id", "summary"}

// incidentColumns fit on a line.
var incidentColumns = []string{"start", "end", "cause", "endpoints", "down", "clusters", "id"}

func newIncidents() *cobra.Command {
	var c client
	c.empty = emptyTable{rows: "incidents", recorded: true}
	var since, until string
	var open bool
	command := &cobra.Command{
		Use:   "incidents [CLUSTER]",
		Short: "Show outages: endpoints that went down together",
		Long: `incidents groups the recorded changes of health: endpoints that went down
within a minute of each other, in one cluster or one zone, are one incident. It
is over when none of them is down. Those that go on come first, then those that
began last.`,
		Example: "  hdsd incidents --since 7d\n  hdsd incidents web --open",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("incidents takes at most one argument, CLUSTER, but was given %q", strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			cluster, _ := c.subject(args)
			request := &hdsdv1.ListIncidentsRequest{Cluster: cluster}
			var err error
			if request.StartTime, request.EndTime, err = parsePeriod(since, until, now()); err != nil {
				return err
			}
			p, err := c.printer(command, incidentHeader, incidentColumns...)
			if err != nil {
				return err
			}
			return c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
				list := func(goingOn bool) lister[*hdsdv1.Incident] {
					return filtered(func(i *hdsdv1.Incident) bool { return c.filter.hasZone(i.GetZones()) }, func(token string, size int32) ([]*hdsdv1.Incident, string, error) {
						if request.Open = nil; goingOn || open || c.filter.unhealthy {
							request.Open = new(true)
						}
						request.PageToken, request.PageSize = token, size
						answer, err := query.ListIncidents(ctx, request)
						return answer.GetIncidents(), answer.GetNextPageToken(), err
					})
				}
				pages := list(false)
				if c.isTable() {
					pages = worstFirst(c.limit, list, (*hdsdv1.Incident).GetId, func(_, _ *hdsdv1.Incident) int { return 0 }) // the newest are first already
				}
				return printAll(p, c.limit, pages, c.incidentCells)
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

func (c *client) incidentCells(i *hdsdv1.Incident) []string {
	end, clusters := "", strings.Join(i.GetClusters(), " ")
	if i.GetEnd() != nil {
		end = timeCell(i.GetEnd())
	}
	if n := len(i.GetClusters()); c.output == "table" && n > 1 {
		clusters = fmt.Sprintf("%s +%d", i.GetClusters()[0], n-1) // fits on a line
	}
	return []string{
		timeCell(i.GetStart()), end, i.GetCause().String(), number(i.GetEndpoints()), number(i.GetDown()),
		clusters, strings.Join(i.GetZones(), " "), i.GetId(), i.GetSummary(),
	}
}
