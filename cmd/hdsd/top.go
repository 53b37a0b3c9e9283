package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/internal/table"
)

// Lists of top, and the columns of each.
const (
	topFlaps    = "flaps"
	topRecovery = "recovery"
	topCheckers = "checkers"
)

var (
	topHeader  = []string{"top", "cluster", "address", "locality", "checker", "changes", "outages", "longest_seconds", "down_since", "votes", "against", "against_ratio", "believed", "cluster_version"}
	topColumns = map[string][]string{
		topFlaps:    {"cluster", "cluster_version", "address", "locality", "changes", "outages"},
		topRecovery: {"cluster", "cluster_version", "address", "locality", "longest_seconds", "down_since", "outages"},
		topCheckers: {"checker", "votes", "against", "against_ratio", "believed"},
	}
	topEmpty = map[string]string{topRecovery: "no outages", topCheckers: "no votes"} // topFlaps says why there are no changes

	topTitles = map[string]string{
		topFlaps: "Changed most often", topRecovery: "Took longest to recover", topCheckers: "Voted most often against the verdict",
	}
)

func newTop() *cobra.Command {
	var c client
	c.empty = emptyTable{rows: "changes", recorded: true}
	var since, until string
	command := &cobra.Command{
		Use:   "top [CLUSTER]",
		Short: "Show endpoints that flap or stay down, checkers that disagree",
		Long: `top reads the recorded changes of health, and shows the endpoints that
changed most often, those that were down longest at a time, and the checkers
whose votes were most often against the verdict that was recorded. A checker
that is late has such votes, too; BELIEVED says what hdsd thinks of it now.
Votes of a warm-up, and old votes of a silent checker, do not count.
--limit says how many of each.`,
		Example: "  hdsd top --since 7d\n  hdsd top web --since 30d --limit 3",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("top takes at most one argument, CLUSTER, but was given %q", args)
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			cluster, _ := c.subject(args)
			request := &hdsdv1.ListTransitionsRequest{Cluster: cluster, Locality: c.filter.locality, Checker: c.filter.checker}
			var err error
			if request.StartTime, request.EndTime, err = parsePeriod(since, until, now()); err != nil {
				return err
			}
			if c.limit <= 0 {
				return usageError{fmt.Errorf("--limit %d: want a number of at least 1", c.limit)}
			}
			c.filter.noUnhealthy = "the lists are of changes between healthy and not"
			if err := c.filter.check(); err != nil {
				return err
			}
			end := now()
			if request.EndTime != nil && request.EndTime.AsTime().Before(end) {
				end = request.EndTime.AsTime()
			}
			var ranks ranking
			err = c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
				for more := true; more; more = request.PageToken != "" {
					request.PageSize = pageSize
					page, err := query.ListTransitions(ctx, request)
					if err != nil {
						return err
					}
					for _, t := range page.GetTransitions() {
						ranks.add(t)
						c.shown.Add(1)
					}
					request.PageToken = page.GetNextPageToken()
				}
				ranks.end(end)
				if c.shown.Load() == 0 {
					c.filters = givenFilters(command)
					ranks.empty = c.emptyText(func() *timestamppb.Timestamp { return historyBegan(ctx, query) })
				}
				c.empty = emptyTable{} // the lists report it
				return ranks.ask(ctx, query)
			})
			if err != nil {
				return err
			}
			return c.printTop(command, &ranks)
		},
	}
	c.addFlags(command)
	c.filter.addChecker(command, "changes with a vote")
	_ = command.Flags().Set("limit", "10")
	command.Flags().Lookup("limit").DefValue, command.Flags().Lookup("limit").Usage = "10", "show this many of each"
	command.ValidArgsFunction = c.completeEndpoint
	command.Flags().StringVar(&since, "since", "7d", "from this `time` on ("+timeForms+")")
	command.Flags().StringVar(&until, "until", "", "before this `time` (as --since; default: now)")
	completeWords(command, "since")
	completeWords(command, "until")
	return command
}

// printTop shows the lists: one below the other as tables, else all rows with the same columns.
func (c *client) printTop(command *cobra.Command, ranks *ranking) error {
	out := command.OutOrStdout()
	screen, err := table.ScreenOf(out, c.color)
	if err != nil {
		return usageError{err}
	}
	var combined printer
	for i, list := range []string{topFlaps, topRecovery, topCheckers} {
		p := combined
		switch {
		case c.output == "table" || c.output == "wide":
			if i > 0 {
				sayLine(out, "")
			}
			sayLine(out, topTitles[list])
			p = newNarrow(out, screen, topHeader, topColumns[list])
		case combined == nil:
			if p, err = newPrinter(c.output, screen, out, topHeader, nil); err != nil {
				return err
			}
			combined = p
		}
		rows := ranks.rows(list, c.limit)
		if len(rows) == 0 && combined == nil {
			sayLine(out, cmp.Or(topEmpty[list], ranks.empty))
			continue
		}
		for _, cells := range rows {
			if err := p.row(topMessage(cells), cells); err != nil {
				return err
			}
		}
		if combined == nil {
			if err := p.close(); err != nil {
				return err
			}
		}
	}
	if combined == nil {
		return nil
	}
	return combined.close()
}

// topNames are the columns as JSON has them; those from the fifth on may be numbers, but the last.
var topNames = []string{"top", "cluster", "address", "locality", "checker", "changes", "outages", "longestSeconds", "downSince", "votes", "against", "againstRatio", "believed", "version"}

// topMessage is a row as JSON.
func topMessage(cells []string) *structpb.Struct {
	m := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for i, cell := range cells {
		if n, err := strconv.ParseFloat(cell, 64); err == nil && i > 4 && i < len(cells)-1 {
			m.Fields[topNames[i]] = structpb.NewNumberValue(n)
		} else if cell != "" {
			m.Fields[topNames[i]] = structpb.NewStringValue(cell)
		}
	}
	return m
}

// ranking adds changes of health up.
type ranking struct {
	endpoints map[rankedEndpoint]*endpointRank
	checkers  map[string]*checkerRank
	empty     string // reason why there are no changes; empty if there are some
}

type rankedEndpoint struct{ cluster, address, locality string }

// endpointRank is the record of an endpoint.
type endpointRank struct {
	rankedEndpoint
	changes, outages int
	longest          time.Duration
	downSince        time.Time // time when it went down; zero: it is not down
}

// checkerRank is the record of a checker's votes when verdicts changed.
type checkerRank struct {
	id             string
	votes, against int
	believed       string
}

func statusDown(h corev3.HealthStatus) bool {
	return h == corev3.HealthStatus_UNHEALTHY || h == corev3.HealthStatus_TIMEOUT
}

func statusUp(h corev3.HealthStatus) bool {
	return h == corev3.HealthStatus_HEALTHY || h == corev3.HealthStatus_DEGRADED
}

// add adds the next change.
func (r *ranking) add(t *hdsdv1.Transition) {
	if r.endpoints == nil {
		r.endpoints, r.checkers = map[rankedEndpoint]*endpointRank{}, map[string]*checkerRank{}
	}
	key := rankedEndpoint{t.GetCluster(), t.GetAddress(), localityCell(t.GetLocality())}
	e := r.endpoints[key]
	if e == nil {
		e = &endpointRank{rankedEndpoint: key}
		r.endpoints[key] = e
	}
	e.changes++
	switch nowDown := statusDown(t.GetTo()); {
	case nowDown && e.downSince.IsZero():
		e.outages++
		e.downSince = t.GetTime().AsTime()
	case !nowDown && !e.downSince.IsZero():
		e.longest = max(e.longest, t.GetTime().AsTime().Sub(e.downSince))
		e.downSince = time.Time{}
	}
	for _, o := range t.GetObservations() {
		status, vote := t.GetTo(), o.GetStatus()
		if !statusUp(status) && !statusDown(status) || !statusUp(vote) && !statusDown(vote) || !health.IsOpinion(o.GetDisbelieved()) {
			continue
		}
		k := r.checkers[o.GetChecker()]
		if k == nil {
			k = &checkerRank{id: o.GetChecker()}
			r.checkers[k.id] = k
		}
		if k.votes++; statusUp(status) != statusUp(vote) {
			k.against++
		}
	}
}

// end counts present outages.
func (r *ranking) end(now time.Time) {
	for _, e := range r.endpoints {
		if !e.downSince.IsZero() {
			e.longest = max(e.longest, now.Sub(e.downSince))
		}
	}
}

// ask finds out which checkers are believed now.
func (r *ranking) ask(ctx context.Context, query hdsdv1.QueryClient) error {
	for request := (&hdsdv1.ListCheckersRequest{Lost: true, PageSize: pageSize}); ; {
		page, err := query.ListCheckers(ctx, request)
		if err != nil {
			return err
		}
		for _, k := range page.GetCheckers() {
			if rank := r.checkers[k.GetId()]; rank != nil {
				rank.believed = cmp.Or(k.GetDistrustReason(), blindText(k), "yes")
			}
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return nil
		}
	}
}

func blindText(k *hdsdv1.Checker) string {
	if k.GetBlindReason() == "" {
		return ""
	}
	return "blind: " + k.GetBlindReason()
}

// rows returns the cells of a list, the worst first.
func (r *ranking) rows(list string, limit int) (rows [][]string) {
	if list == topCheckers {
		checkers := slices.SortedFunc(maps.Values(r.checkers), func(a, b *checkerRank) int {
			return cmp.Or(cmp.Compare(b.ratio(), a.ratio()), cmp.Compare(b.votes, a.votes), cmp.Compare(a.id, b.id))
		})
		for _, k := range checkers[:min(limit, len(checkers))] {
			rows = append(rows, []string{
				list, "", "", "", k.id, "", "", "", "", strconv.Itoa(k.votes), strconv.Itoa(k.against), strconv.FormatFloat(k.ratio(), 'f', 4, 64), cmp.Or(k.believed, "away"), "",
			})
		}
		return rows
	}
	worse := func(e *endpointRank) float64 { return float64(e.changes) }
	if list == topRecovery {
		worse = func(e *endpointRank) float64 { return e.longest.Seconds() }
	}
	endpoints := slices.SortedFunc(maps.Values(r.endpoints), func(a, b *endpointRank) int {
		return cmp.Or(cmp.Compare(worse(b), worse(a)), cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.address, b.address), cmp.Compare(a.locality, b.locality))
	})
	for _, e := range endpoints[:min(limit, len(endpoints))] {
		if worse(e) == 0 {
			break
		}
		sinceText := ""
		if !e.downSince.IsZero() {
			sinceText = e.downSince.UTC().Format("2006-01-02T15:04:05.000Z07:00")
		}
		rows = append(rows, []string{
			list, e.cluster, e.address, e.locality, "", strconv.Itoa(e.changes), strconv.Itoa(e.outages), secondsCell(e.longest.Seconds()), sinceText, "", "", "", "", versionCell(e.cluster),
		})
	}
	return rows
}

func (k *checkerRank) ratio() float64 { return float64(k.against) / float64(k.votes) }
