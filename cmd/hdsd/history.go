package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/table"
)

var historyHeader = []string{"time", "cluster", "address", "locality", "from", "to", "observations", "reason", "votes", "cluster_version"}

// historyColumns fit on a line.
var historyColumns = []string{"time", "cluster", "cluster_version", "address", "locality", "from", "to", "votes"}

// latestChanges is the number of changes shown on a terminal.
const latestChanges = 50

func newHistory() *cobra.Command {
	var c client
	c.empty = emptyTable{rows: "changes", recorded: true}
	var since, until, kind string
	var newestFirst bool
	command := &cobra.Command{
		Use:   "history [CLUSTER [ADDRESS]]",
		Short: "Show recorded changes of health, with reason and votes",
		Long: `history shows the recorded changes, oldest first. On a terminal it shows the
latest 50, unless --since, --until or --limit says how many.

With --kind, it shows what else happened: checkers that came, went or were
doubted, what operators did, changed clusters, notes. KIND is a kind, such as
checker_lost, or what several begin with, such as checker. 'all' shows all of
them and the changes of health; -o wide says why these were.`,
		Example: "  hdsd history --since 1h\n  hdsd history --kind all --since 14:00 --until 14:20\n  hdsd history --kind checker --checker checker-2\n  hdsd history web 10.0.0.7:8080 --newest-first --limit 5",
		Args:    endpointArgs,
		RunE: func(command *cobra.Command, args []string) error {
			cluster, address := c.subject(args)
			request := &hdsdv1.ListTransitionsRequest{Cluster: cluster, Address: address, Checker: c.filter.checker, NewestFirst: newestFirst}
			var err error
			if request.StartTime, request.EndTime, err = parsePeriod(since, until, now()); err != nil {
				return err
			}
			request.Unhealthy, request.Locality = c.filter.unhealthy, c.filter.locality
			if wanted := strings.ToUpper(kind); wanted != "" && wanted != kindHealth {
				return c.showEvents(command, request, wanted)
			}
			p, err := c.printer(command, historyHeader, historyColumns...)
			if err != nil {
				return err
			}
			latest := since == "" && until == "" && !command.Flags().Changed("limit") && table.IsTerminal(command.OutOrStdout())
			return c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
				failing := ""
				defer func() {
					if failing != "" {
						say(command.ErrOrStderr(), "hdsd: history is not being written: recent changes are missing above: %s\n", failing)
					}
				}()
				return printAll(p, c.limit, func(token string, size int32) ([]*hdsdv1.Transition, string, error) {
					request.PageToken, request.PageSize = token, size
					if latest {
						request.PageSize, request.NewestFirst = latestChanges, true
					}
					answer, err := query.ListTransitions(ctx, request)
					if err == nil && len(answer.GetTransitions()) == 0 && answer.GetMissing() == nil {
						err = c.neverKnown(ctx, query)
					}
					failing = answer.GetFailing()
					rows := withGaps(answer, request.GetNewestFirst())
					if !latest {
						return rows, answer.GetNextPageToken(), err
					}
					if !newestFirst {
						slices.Reverse(rows)
					}
					if answer.GetNextPageToken() != "" {
						say(command.ErrOrStderr(), "hdsd: the latest %d changes; '--since 1d' or '--limit 0' shows more\n", latestChanges)
					}
					return rows, "", err
				}, transitionCells)
			})
		},
	}
	c.addFlags(command)
	c.filter.addChecker(command, "changes with a vote, and events,")
	command.ValidArgsFunction = c.completeEndpoint
	command.Flags().StringVar(&since, "since", "", "from this `time` on ("+timeForms+")")
	command.Flags().StringVar(&until, "until", "", "before this `time` (as --since)")
	command.Flags().BoolVar(&newestFirst, "newest-first", false, "newest first instead of oldest first")
	command.Flags().StringVar(&kind, "kind", "", "show events of this `KIND` instead of changes of health; 'all': both")
	completeWords(command, "kind", kindWords()...)
	completeWords(command, "since")
	completeWords(command, "until")
	return command
}

// withGaps puts rows for gaps among the transitions of a page. Such a row has no cluster.
func withGaps(page *hdsdv1.ListTransitionsResponse, newestFirst bool) []*hdsdv1.Transition {
	transitions := page.GetTransitions()
	for _, g := range page.GetMissing().GetGaps() {
		reason := "the database was damaged"
		if n := g.GetTransitions(); n > 0 {
			reason = "the disk did not take " + plural(int(n), "transition")
		}
		row := &hdsdv1.Transition{Time: g.GetStart(), Reason: fmt.Sprintf("gap until %s: %s; health in between is not known", timeCell(g.GetEnd()), reason)}
		index := slices.IndexFunc(transitions, func(t *hdsdv1.Transition) bool {
			if newestFirst {
				return t.GetTime().AsTime().Before(g.GetStart().AsTime())
			}
			return t.GetTime().AsTime().After(g.GetStart().AsTime())
		})
		if index < 0 {
			index = len(transitions)
		}
		transitions = slices.Insert(transitions, index, row)
	}
	return transitions
}

func transitionCells(t *hdsdv1.Transition) []string {
	votes := "GAP" // the row of a gap
	if t.GetCluster() != "" {
		votes = votesCell(t.GetTo(), t.GetObservations())
	}
	return []string{
		timeCell(t.GetTime()), t.GetCluster(), t.GetAddress(), localityCell(t.GetLocality()),
		t.GetFrom().String(), t.GetTo().String(), observationsCell(t.GetObservations()), t.GetReason(), votes, versionCell(t.GetCluster()),
	}
}
