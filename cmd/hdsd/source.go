package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"hdsd/api"
	hdsdv1 "hdsd/gen/hdsd/v1"
)

var sourceHeader = []string{"name", "clusters", "endpoints", "held_since", "clusters_left", "endpoints_left", "accepts_at", "problem"}

func newSource() *cobra.Command {
	command := &cobra.Command{
		Use:   "source list|accept",
		Short: "List the sources of clusters, and accept what one takes away",
		Long: `source is about where clusters come from: files, DNS and management servers. If
a source takes away too much at once, hdsd holds what it took away until the
source gives it back, or an operator accepts the loss.`,
		Args: knownCommand,
		RunE: func(command *cobra.Command, _ []string) error {
			return usageError{errors.New("name what to do: list or accept")}
		},
	}
	command.AddCommand(newSourceList(), newSourceAccept())
	return command
}

func newSourceList() *cobra.Command {
	var c client
	c.empty = emptyTable{rows: "sources", hint: "'sources' in the configuration names them"}
	c.filter.noLocality = "sources have no locality; 'hdsd clusters --locality' has clusters by that of their endpoints"
	command := &cobra.Command{
		Use:   "list",
		Short: "List the sources of clusters",
		Long: `list shows how much of each source is in use. Where a source takes away more at
once than its hold_shrinkage allows, what it takes away is held: it stays in
use. Then list also shows since when, what would be left without it, and when
hdsd accepts by itself. Where hdsd refuses something of a source, list says what
is wrong with it, and what stays in use.`,
		Example: "  hdsd source list",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			p, err := c.printer(command, sourceHeader)
			if err != nil {
				return err
			}
			return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
				return printAll(p, c.limit, filtered(func(s *hdsdv1.Source) bool { return !c.filter.unhealthy || s.GetHeld() != nil || s.GetProblem() != "" }, func(string, int32) ([]*hdsdv1.Source, string, error) {
					answer, err := control.ListSources(ctx, &hdsdv1.ListSourcesRequest{})
					return answer.GetSources(), "", err
				}), sourceCells)
			})
		},
	}
	c.addFlags(command)
	return command
}

func newSourceAccept() *cobra.Command {
	var c client
	var reason, author string
	command := &cobra.Command{
		Use:   "accept NAME",
		Short: "Accept that a source takes away clusters or endpoints",
		Long: `accept shows the clusters and endpoints that hdsd holds although the source took
them away, and takes them out of use. If hdsd holds others by then, accept
changes nothing.`,
		Example: "  hdsd source accept mesh --reason \"the old cluster is gone for good\"",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return errors.New("name one source, as 'hdsd source list' shows it")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
				sources, err := control.ListSources(ctx, &hdsdv1.ListSourcesRequest{})
				if err != nil {
					return err
				}
				request := &hdsdv1.AcceptSourceRequest{Name: args[0], Reason: reason, Author: authorOr(author)}
				for _, s := range sources.GetSources() {
					if held := s.GetHeld(); s.GetName() == args[0] && held != nil {
						say(command.OutOrStdout(), "%s has %s in use; %s are left\n",
							s.GetName(), api.AmountText(int(s.GetClusters()), int(s.GetEndpoints())), api.AmountText(int(held.GetClusters()), int(held.GetEndpoints())))
						request.HeldSince, request.HeldRevision = held.GetSince(), held.GetRevision()
					}
				}
				answer, err := control.AcceptSource(ctx, request)
				if err != nil {
					return err
				}
				say(command.OutOrStdout(), "accepted: %s are in use\n",
					api.AmountText(int(answer.GetSource().GetClusters()), int(answer.GetSource().GetEndpoints())))
				return nil
			})
		},
	}
	command.Flags().StringVar(&reason, "reason", "", "why, on one `line`")
	completeWords(command, "reason")
	addAuthorFlag(command, &author)
	c.addOperatorFlags(command)
	command.ValidArgsFunction = cobra.NoFileCompletions
	return command
}

func sourceCells(s *hdsdv1.Source) []string {
	cells := []string{s.GetName(), strconv.Itoa(int(s.GetClusters())), strconv.Itoa(int(s.GetEndpoints())), "", "", "", "", s.GetProblem()}
	if held := s.GetHeld(); held != nil {
		cells[3], cells[6] = timeCell(held.GetSince()), timeCell(held.GetAcceptsAt())
		cells[4], cells[5] = strconv.Itoa(int(held.GetClusters())), strconv.Itoa(int(held.GetEndpoints()))
	}
	return cells
}
