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

// describer asks what is known about one thing.
type describer struct {
	*client
	*sheet
	hdsdv1.QueryClient
	control hdsdv1.ControlClient
}

// latestOf is how many changes of one thing are described.
const latestOf = 10

// shownNames is how many names a line lists.
const shownNames = 8

func newDescribe() *cobra.Command {
	command := &cobra.Command{
		Use:   "describe",
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
		newDescription("cluster NAME", "Show everything about a cluster", (*client).completeEndpoint, describeCluster),
		newDescription("endpoint CLUSTER ADDRESS", "Show everything about an endpoint, and who says so", (*client).completeEndpoint, describeEndpoint),
		newDescription("checker ID", "Show everything about a checker", (*client).completeChecker, describeChecker),
		newDescription("client ID", "Show everything about a data plane or another client", (*client).completeClient, describeClient),
		newDescription("incident ID", "Show everything about an incident", (*client).completeIncident, describeIncident),
	)
	return command
}

type completion func(*client, *cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

func newDescription(use, short string, complete completion, describe func(context.Context, *describer, []string) error) *cobra.Command {
	var c client
	name, arguments, _ := strings.Cut(use, " ")
	want := len(strings.Fields(arguments))
	command := &cobra.Command{
		Use: use, Short: short,
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
				c.about(args)
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

// periods are those that availability is described of.
var periods = []struct {
	name string
	time.Duration
}{{"1 h", time.Hour}, {"24 h", 24 * time.Hour}, {"7 d", 7 * 24 * time.Hour}}

// availability describes how available a cluster or an endpoint was.
func (d *describer) availability(ctx context.Context, by, cluster, address string) error {
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
			Cluster: cluster, Address: address, By: by, StartTime: timestamppb.New(now().Add(-p.Duration)), PageSize: pageSize,
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
		if all := r.Healthy + r.Unhealthy; all > 0 {
			ratio := r.Healthy / all
			r.Ratio = &ratio
			text = p.name + ": " + table.Percent(fmt.Sprint(ratio), now())
		}
		texts, rows = append(texts, text), append(rows, r)
	}
	d.line("available", "%s", strings.Join(texts, ", "))
	return d.addValue("availability", rows)
}

// changes describes the latest changes that a question is about.
func (d *describer) changes(ctx context.Context, r *hdsdv1.ListTransitionsRequest, withAddress bool) error {
	r.NewestFirst, r.PageSize = true, latestOf
	answer, err := d.ListTransitions(ctx, r)
	if err != nil {
		return err
	}
	var all []string
	for _, t := range answer.GetTransitions() {
		what := ""
		if withAddress {
			what = t.GetAddress() + " "
		}
		all = append(all, fmt.Sprintf("%s %s%s to %s: %s", table.Clock(timeCell(t.GetTime()), now()), what, t.GetFrom(), t.GetTo(), t.GetReason()))
	}
	d.lines("changes", "none recorded", all)
	return addAll(d.sheet, "transitions", answer.GetTransitions())
}

// holders describes which data planes have a cluster.
func (d *describer) holders(ctx context.Context, cluster string) error {
	answer, err := d.ListClients(ctx, &hdsdv1.ListClientsRequest{Cluster: cluster, PageSize: pageSize})
	if code := status.Code(err); code == codes.PermissionDenied || code == codes.Unauthenticated {
		d.line("data planes", "not shown: %s", status.Convert(err).Message())
		return nil
	}
	if err != nil {
		return err
	}
	var synced, behind []string
	var all []string
	refused := map[string]string{}
	for _, c := range answer.GetClients() {
		switch {
		case c.GetError() > 0:
			refused[c.GetId()] = c.GetLastError()
		case c.GetStale() > 0:
			behind = append(behind, c.GetId())
		default:
			synced = append(synced, c.GetId())
		}
	}
	bad := func(id string) bool { _, is := refused[id]; return is }
	behind = slices.DeleteFunc(slices.Compact(behind), bad)
	synced = slices.DeleteFunc(slices.Compact(synced), func(id string) bool { return bad(id) || slices.Contains(behind, id) })
	if len(synced) > 0 {
		all = append(all, fmt.Sprintf("%d synced: %s", len(synced), someNames(synced)))
	}
	if len(behind) > 0 {
		all = append(all, fmt.Sprintf("%d behind: %s", len(behind), someNames(behind)))
	}
	for _, c := range answer.GetClients() {
		if why, is := refused[c.GetId()]; is && len(all) < shownNames {
			all = append(all, fmt.Sprintf("%s refuses it: %s", c.GetId(), why))
			delete(refused, c.GetId())
			d.next("hdsd describe client " + attention.Quoted(c.GetId()))
		}
	}
	d.lines("data planes", "none asked for it", all)
	return addAll(d.sheet, "clients", answer.GetClients())
}

// overrides describes those that concern a cluster or an endpoint.
func (d *describer) overrides(ctx context.Context, concerns func(*hdsdv1.Override) bool) error {
	answer, err := d.control.ListOverrides(ctx, &hdsdv1.ListOverridesRequest{})
	if code := status.Code(err); code == codes.PermissionDenied || code == codes.Unauthenticated || code == codes.Unimplemented {
		return nil
	}
	if err != nil {
		return err
	}
	all := slices.DeleteFunc(answer.GetOverrides(), func(o *hdsdv1.Override) bool { return !concerns(o) })
	var texts []string
	for _, o := range all {
		texts = append(texts, overrideLine(o))
	}
	d.lines("overrides", "none", texts)
	return addAll(d.sheet, "overrides", all)
}

// someNames lists names, the first of many.
func someNames(names []string) string {
	if more := len(names) - shownNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shownNames], ", "), more)
	}
	return strings.Join(names, ", ")
}

// ago writes a time and how long ago it was.
func ago(t *timestamppb.Timestamp) string {
	if t == nil {
		return "an unknown time"
	}
	return fmt.Sprintf("%s (%s)", t.AsTime().UTC().Format(time.RFC3339), table.Ago(timeCell(t), now()))
}
