package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"hdsd/coordinator/attention"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/suggest"
	"hdsd/internal/table"
)

// describer collects the facts about one thing.
type describer struct {
	*client
	*sheet
	hdsdv1.QueryClient
	control hdsdv1.ControlClient
}

// latestOf is the number of changes in a description.
const latestOf = 10

// shownNames bounds the names in a line.
const shownNames = 8

func newDescribe() *cobra.Command {
	command := &cobra.Command{
		Use:   "describe cluster|endpoint|checker|client|incident",
		Short: "Show all about one cluster, endpoint, checker, client, incident",
		Long: `describe shows all that is known about one thing: its health and since when,
what is published or held and why, the votes, the latest changes, the
availability, who has it, and the commands to go on with. What is not there is
an error.`,
		Example: "  hdsd describe cluster web\n  hdsd describe endpoint web 10.0.0.7:8080\n  hdsd describe checker checker-1 -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name what to describe: cluster, endpoint, checker, client or incident")
			}
			return fmt.Errorf("describe %q: name one of cluster, endpoint, checker, client, incident%s",
				args[0], suggest.DidYouMean(args[0], []string{"cluster", "endpoint", "checker", "client", "incident"}))
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	command.AddCommand(
		newDescription("cluster NAME", "Show everything about a cluster", `describe cluster shows the health of a cluster by zone, what is published, the
checks as checkers are sent them, overrides, endpoints that are not healthy, the
latest changes, the availability, and the data planes that have it.`,
			(*client).completeEndpoint, describeCluster),
		newDescription("endpoint CLUSTER ADDRESS", "Show everything about an endpoint, and who says so", `describe endpoint shows the health of an endpoint and since when, each vote with
its age and whether it counts, what is published, and the latest changes.`,
			(*client).completeEndpoint, describeEndpoint),
		newDescription("checker ID", "Show everything about a checker", `describe checker shows what a checker has to check, what it was sent, what it
reports, whether its votes count and why not, and what happened to it.`,
			(*client).completeChecker, describeChecker),
		newDescription("client ID", "Show everything about a data plane or another client", `describe client shows which resources a data plane, a checker or a management
server asked for, has and refused, with the text of each refusal.`,
			(*client).completeClient, describeClient),
		newDescription("incident ID", "Show everything about an incident", `describe incident shows which endpoints went down together, when, the likely
cause, and what happened beside.`,
			(*client).completeIncident, describeIncident),
	)
	return command
}

type completion func(*client, *cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

func newDescription(use, short, long string, complete completion, describe func(context.Context, *describer, []string) error) *cobra.Command {
	var c client
	name, arguments, _ := strings.Cut(use, " ")
	want := len(strings.Fields(arguments))
	command := &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != want {
				return fmt.Errorf("describe %s takes %s, but was given %q", name, arguments, strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			if c.output != "table" && c.output != "json" {
				return usageError{fmt.Errorf("--output %q: want table or json", c.output)}
			}
			connection, err := c.connect()
			if err != nil {
				return err
			}
			defer connection.Close()
			ctx, query := command.Context(), hdsdv1.NewQueryClient(connection)
			d := &describer{client: &c, sheet: &sheet{}, QueryClient: query, control: hdsdv1.NewControlClient(connection)}
			if name == "cluster" || name == "endpoint" {
				c.subject(args)
			}
			warnFrozen(ctx, d.control, command.ErrOrStderr())
			if err := describe(ctx, d, args); err != nil {
				return c.advise(ctx, query, err)
			}
			return d.print(command.OutOrStdout(), c.output)
		},
	}
	c.addConnection(command)
	command.Flags().StringVarP(&c.output, "output", "o", "table", "table or json (an object)")
	completeWords(command, "output", "table", "json")
	command.ValidArgsFunction = func(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= want {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(&c, command, args, begun)
	}
	return command
}

// periods are the periods of availability in a description.
var periods = []struct {
	name string
	time.Duration
}{{"1 h", time.Hour}, {"24 h", 24 * time.Hour}, {"7 d", 7 * 24 * time.Hour}}

// availability describes the availability of a cluster or an endpoint.
func (d *describer) availability(ctx context.Context, dimension, cluster, address string) error {
	type row struct {
		Period    string   `json:"period"`
		Healthy   float64  `json:"healthySeconds"`
		Unhealthy float64  `json:"unhealthySeconds"`
		Ratio     *float64 `json:"healthyRatio,omitempty"`
	}
	var texts []string
	var rows []row
	for _, p := range periods {
		answer, err := d.ListAvailability(ctx, &hdsdv1.ListAvailabilityRequest{
			Cluster: cluster, Address: address, By: dimension, StartTime: timestamppb.New(now().Add(-p.Duration)), PageSize: pageSize,
		})
		if err != nil {
			return err
		}
		r := row{Period: strings.ReplaceAll(p.name, " ", "")}
		for _, a := range answer.GetAvailability() {
			r.Healthy += a.GetHealthySeconds()
			r.Unhealthy += a.GetUnhealthySeconds()
		}
		text := p.name + ": nothing known"
		if total := r.Healthy + r.Unhealthy; total > 0 {
			ratio := r.Healthy / total
			r.Ratio = &ratio
			text = p.name + ": " + table.Percent(fmt.Sprint(ratio), now())
		}
		texts, rows = append(texts, text), append(rows, r)
	}
	d.line("available", "%s", strings.Join(texts, ", "))
	return d.addValue("availability", rows)
}

// changes describes the latest changes that match a query.
func (d *describer) changes(ctx context.Context, r *hdsdv1.ListTransitionsRequest, withAddress bool) error {
	r.NewestFirst, r.PageSize = true, latestOf
	answer, err := d.ListTransitions(ctx, r)
	if err != nil {
		return err
	}
	var lines []string
	for _, t := range answer.GetTransitions() {
		text := ""
		if withAddress {
			text = t.GetAddress() + " "
		}
		if version := versionCell(t.GetCluster()); version != "" {
			text += "(version " + version + ") "
		}
		lines = append(lines, fmt.Sprintf("%s %s%s to %s: %s", table.Clock(timeCell(t.GetTime()), now()), text, t.GetFrom(), t.GetTo(), t.GetReason()))
	}
	d.lines("changes", "none recorded", lines)
	return addAll(d.sheet, "transitions", answer.GetTransitions())
}

// holders describes the data planes that have a cluster.
func (d *describer) holders(ctx context.Context, cluster string) error {
	answer, err := d.ListClients(ctx, &hdsdv1.ListClientsRequest{Cluster: cluster, PageSize: pageSize})
	if code := status.Code(err); code == codes.PermissionDenied || code == codes.Unauthenticated {
		d.line("data planes", "not shown: %s", status.Convert(err).Message())
		return nil
	}
	if err != nil {
		return err
	}
	var synced, lagging []string
	var lines []string
	refused := map[string]string{}
	for _, c := range answer.GetClients() {
		switch {
		case c.GetError() > 0:
			refused[c.GetId()] = c.GetLastError()
		case c.GetStale() > 0:
			lagging = append(lagging, c.GetId())
		default:
			synced = append(synced, c.GetId())
		}
	}
	bad := func(id string) bool { _, ok := refused[id]; return ok }
	lagging = slices.DeleteFunc(slices.Compact(lagging), bad)
	synced = slices.DeleteFunc(slices.Compact(synced), func(id string) bool { return bad(id) || slices.Contains(lagging, id) })
	if len(synced) > 0 {
		lines = append(lines, fmt.Sprintf("%d synced: %s", len(synced), someNames(synced)))
	}
	if len(lagging) > 0 {
		lines = append(lines, fmt.Sprintf("%d behind: %s", len(lagging), someNames(lagging)))
	}
	for _, c := range answer.GetClients() {
		if reason, ok := refused[c.GetId()]; ok && len(lines) < shownNames {
			lines = append(lines, fmt.Sprintf("%s refuses it: %s", c.GetId(), reason))
			delete(refused, c.GetId())
			d.next("hdsd describe client " + attention.Quoted(c.GetId()))
		}
	}
	d.lines("data planes", "none asked for it", lines)
	return addAll(d.sheet, "clients", answer.GetClients())
}

// overrides describes the overrides of a cluster or an endpoint.
func (d *describer) overrides(ctx context.Context, concerns func(*hdsdv1.Override) bool) error {
	answer, err := d.control.ListOverrides(ctx, &hdsdv1.ListOverridesRequest{})
	if code := status.Code(err); code == codes.PermissionDenied || code == codes.Unauthenticated || code == codes.Unimplemented {
		return nil
	}
	if err != nil {
		return err
	}
	applied := slices.DeleteFunc(answer.GetOverrides(), func(o *hdsdv1.Override) bool { return !concerns(o) })
	var texts []string
	for _, o := range applied {
		texts = append(texts, overrideLine(o))
	}
	d.lines("overrides", "none", texts)
	return addAll(d.sheet, "overrides", applied)
}

// someNames lists names, the first of many.
func someNames(names []string) string {
	if rest := len(names) - shownNames; rest > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shownNames], ", "), rest)
	}
	return strings.Join(names, ", ")
}

// ago returns a time and its age.
func ago(t *timestamppb.Timestamp) string {
	if t == nil {
		return "an unknown time"
	}
	return fmt.Sprintf("%s (%s)", t.AsTime().UTC().Format(time.RFC3339), table.Ago(timeCell(t), now()))
}
