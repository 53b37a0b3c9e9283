package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

var availabilityHeader = []string{
	"cluster", "address", "locality", "healthy_ratio", "healthy_seconds", "unhealthy_seconds", "unknown_seconds",
	"degraded_seconds", "draining_seconds", "transitions", "checker", "budget_left", "cluster_version",
}

// availabilityColumns fit on a line.
var availabilityColumns = []string{"cluster", "cluster_version", "address", "locality", "checker", "healthy_ratio", "unhealthy_seconds", "budget_left", "transitions"}

func newAvailability() *cobra.Command {
	var c client
	c.empty = emptyTable{rows: "endpoints", recorded: true}
	var since, until, dimension, slo string
	command := &cobra.Command{
		Use:   "availability [CLUSTER [ADDRESS]]",
		Short: "Show how long endpoints were healthy",
		Long: `availability adds up, from the recorded changes, how long each endpoint had
which health. TIMEOUT counts as unhealthy; healthy_ratio is healthy / (healthy
+ unhealthy).

With --by, it adds up endpoints. With --slo, it shows which share of the error
budget is left: 100 % is all of it, below 0 % it is overdrawn. With either, the
worst come first. --by checker shows the health by each checker's own votes, as
the recorded changes have them.`,
		Example: "  hdsd availability --since 30d\n  hdsd availability web --since 2026-01-01T00:00:00Z --until 2026-02-01T00:00:00Z\n  hdsd availability --by zone --slo 99.9% --since 30d",
		Args:    endpointArgs,
		RunE: func(command *cobra.Command, args []string) error {
			cluster, address := c.subject(args)
			request := &hdsdv1.ListAvailabilityRequest{Cluster: cluster, Address: address, By: dimension, Slo: slo}
			if (dimension == "cluster" || dimension == "checker") && c.filter.locality != "" {
				return usageError{fmt.Errorf("--locality: a row of --by %s is of all localities; --by locality and --by zone have one in each row", dimension)}
			}
			if dimension != "" && dimension != "endpoint" && dimension != "checker" && c.filter.checker != "" {
				return usageError{fmt.Errorf("--checker: a row of --by %s is of all checkers; --by checker has one in each row", dimension)}
			}
			var err error
			if request.StartTime, request.EndTime, err = parsePeriod(since, until, now()); err != nil {
				return err
			}
			p, err := c.printer(command, availabilityHeader, availabilityColumns...)
			if err != nil {
				return err
			}
			return c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
				if request.EndTime != nil {
					if began := historyBegan(ctx, query); began != nil && !request.EndTime.AsTime().After(began.AsTime()) {
						return beforeHistory("until", until, began)
					}
				}
				seen, err := c.seen(ctx, query, dimension, cluster, address)
				if err != nil {
					return err
				}
				return printAll(p, c.limit, filtered(func(a *hdsdv1.Availability) bool {
					return seen(a) && c.filter.matches(a.GetLocality()) && (!c.filter.unhealthy || a.GetUnhealthySeconds() > 0)
				}, func(token string, size int32) ([]*hdsdv1.Availability, string, error) {
					request.PageToken, request.PageSize = token, size
					answer, err := query.ListAvailability(ctx, request)
					if err == nil && len(answer.GetAvailability()) == 0 {
						err = c.neverKnown(ctx, query)
					}
					return answer.GetAvailability(), answer.GetNextPageToken(), err
				}), availabilityCells)
			})
		},
	}
	c.addFlags(command)
	c.filter.addChecker(command, "endpoints with a vote now")
	command.ValidArgsFunction = c.completeEndpoint
	command.Flags().StringVar(&since, "since", "", "from this `time` on ("+timeForms+"; default: all of the history)")
	command.Flags().StringVar(&until, "until", "", "before this `time` (as --since; default: now)")
	command.Flags().StringVar(&dimension, "by", "", "what a row is about: endpoint, locality, zone, cluster or checker")
	command.Flags().StringVar(&slo, "slo", "", "show what is left of the error budget of this `objective`, such as 99.9% or 0.999")
	completeWords(command, "by", "endpoint", "locality", "zone", "cluster", "checker")
	completeWords(command, "slo", "99%", "99.9%", "99.99%")
	completeWords(command, "since")
	completeWords(command, "until")
	return command
}

// seen reports which rows are of the requested checker: its own one, or those of the endpoints
// that it votes on now.
func (c *client) seen(ctx context.Context, query hdsdv1.QueryClient, dimension, cluster, address string) (func(*hdsdv1.Availability) bool, error) {
	switch {
	case c.filter.checker == "":
		return func(*hdsdv1.Availability) bool { return true }, nil
	case dimension == "checker":
		return func(a *hdsdv1.Availability) bool { return a.GetChecker() == c.filter.checker }, nil
	}
	votedOn := map[string]bool{}
	_, err := collect(func(token string, size int32) ([]*hdsdv1.Endpoint, string, error) {
		answer, err := query.ListEndpoints(ctx, &hdsdv1.ListEndpointsRequest{Cluster: cluster, Address: address, PageToken: token, PageSize: size})
		for _, e := range answer.GetEndpoints() {
			if c.filter.hasVote(e.GetObservations()) {
				votedOn[endpointKey(e)] = true
			}
		}
		return nil, answer.GetNextPageToken(), err
	})
	return func(a *hdsdv1.Availability) bool {
		return votedOn[endpointKey(&hdsdv1.Endpoint{Cluster: a.GetCluster(), Address: a.GetAddress(), Locality: a.GetLocality()})]
	}, err
}

func availabilityCells(a *hdsdv1.Availability) []string {
	ratio := ""
	if a.HealthyRatio != nil {
		ratio = strconv.FormatFloat(a.GetHealthyRatio(), 'f', 6, 64)
	}
	budget := ""
	if a.BudgetLeft != nil {
		budget = strconv.FormatFloat(a.GetBudgetLeft(), 'f', 4, 64)
	}
	return []string{
		a.GetCluster(), a.GetAddress(), localityCell(a.GetLocality()), ratio,
		secondsCell(a.GetHealthySeconds()), secondsCell(a.GetUnhealthySeconds()), secondsCell(a.GetUnknownSeconds()),
		secondsCell(a.GetDegradedSeconds()), secondsCell(a.GetDrainingSeconds()), number(a.GetTransitions()), a.GetChecker(), budget, versionCell(a.GetCluster()),
	}
}

// secondsCell formats seconds, with milliseconds only if there are any.
func secondsCell(seconds float64) string {
	text := strconv.FormatFloat(seconds, 'f', 3, 64)
	if whole := len(text) - len(".000"); text[whole:] == ".000" {
		return text[:whole]
	}
	return text
}
