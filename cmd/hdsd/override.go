package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

var overridesHeader = []string{"cluster", "address", "locality", "health", "endpoints", "since", "until", "author", "reason", "cluster_version"}

// overrideColumns are the same, with the version beside the cluster.
var overrideColumns = []string{"cluster", "cluster_version", "address", "locality", "health", "endpoints", "since", "until", "author", "reason"}

func newOverride() *cobra.Command {
	command := &cobra.Command{
		Use:   "override",
		Short: "Drain endpoints, or force their health, whatever the checkers say",
		Long: `override replaces the verdict of an endpoint, a cluster, or a locality in one
cluster or everywhere. Checking goes on; when the override ends, the verdict of
the votes applies at once. An override lasts over restarts, until somebody
clears it or its time is over. The most specific one wins: an endpoint's, a
locality's in the cluster, the cluster's, a locality's everywhere, in this
order. Overrides also count while hdsd is frozen. None expires then: an override
whose time is over ends with 'hdsd unfreeze'.

If too few endpoints are left, Envoy sends traffic to all (its panic mode): to
drain a whole cluster drains nothing, unless its healthy_panic_threshold is 0.
Each command warns of that before it sets the override, and with --dry-run.`,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown override %q: use drain, healthy, unhealthy, clear or list", args[0])}
			}
			return command.Help()
		},
	}
	command.AddCommand(
		newOverrideSet("drain", "Send no new traffic (DRAINING)", corev3.HealthStatus_DRAINING),
		newOverrideSet("healthy", "Send traffic, whatever the checkers say", corev3.HealthStatus_HEALTHY),
		newOverrideSet("unhealthy", "Send no traffic (UNHEALTHY)", corev3.HealthStatus_UNHEALTHY),
		newOverrideClear(), newOverrideList(),
	)
	return command
}

// scope is the scope of an override.
type scope struct{ locality string }

func (s *scope) addTo(command *cobra.Command) {
	command.Flags().StringVar(&s.locality, "locality", "", "only in this `REGION[/ZONE[/SUB-ZONE]]`; parts may be empty: /b is zone b of any region")
	completeWords(command, "locality")
}

func (s *scope) parse() (*corev3.Locality, error) {
	parts := append(strings.Split(s.locality, "/"), "", "")
	if strings.Count(s.locality, "/") > 2 {
		return nil, usageError{fmt.Errorf("--locality %q: want REGION, REGION/ZONE or REGION/ZONE/SUB-ZONE", s.locality)}
	}
	return &corev3.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}, nil
}

var errNoScope = usageError{errors.New("name a target: CLUSTER, CLUSTER ADDRESS, or --locality")}

func newOverrideSet(name, short string, status corev3.HealthStatus) *cobra.Command {
	var c client
	var target scope
	var reason, author, lasts string
	var careful caution
	command := &cobra.Command{
		Use:     name + " [CLUSTER [ADDRESS]] --reason TEXT",
		Short:   short,
		Long:    fmt.Sprintf("%s publishes %s for an endpoint, a cluster or a locality, in place of the\nverdict, until somebody clears the override or its time is over.", name, status),
		Example: fmt.Sprintf("  hdsd override %[1]s web 10.0.0.7:8080 --reason \"kernel upgrade\" --for 2h\n  hdsd override %[1]s web --reason \"moving\"\n  hdsd override %[1]s --locality eu/b --reason \"power works\"", name),
		Args:    endpointArgs,
		RunE: func(command *cobra.Command, args []string) error {
			cluster, address := c.subject(args)
			locality, err := target.parse()
			switch {
			case err != nil:
				return err
			case cluster == "" && strings.Trim(target.locality, "/") == "":
				return errNoScope
			case reason == "":
				return usageError{errors.New("--reason TEXT is missing: say why, for other operators")}
			}
			request := &hdsdv1.SetOverrideRequest{
				Cluster: cluster, Address: address, Locality: locality, Health: status, Reason: reason, Author: authorOr(author),
			}
			if request.Duration, err = parseLasts(lasts); err != nil {
				return err
			}
			return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
				warnFrozen(ctx, control, command.ErrOrStderr())
				if ok, err := careful.check(ctx, command, control, request); err != nil || !ok {
					return err
				}
				answer, err := control.SetOverride(ctx, request)
				if err != nil {
					return err
				}
				applies := plural(int(answer.GetOverride().GetEndpoints()), "endpoint")
				if answer.GetOverride().GetEndpoints() == 0 {
					applies += ": more specific overrides decide all of them ('hdsd override list')"
				}
				say(command.OutOrStdout(), "%s\napplies to %s\n", overrideLine(answer.GetOverride()), applies)
				if replaced := answer.GetReplaced(); replaced != nil {
					say(command.OutOrStdout(), "it replaces: %s\n", overrideLine(replaced))
				}
				tellDurability(command.OutOrStdout(), answer)
				return nil
			})
		},
	}
	target.addTo(command)
	command.Flags().StringVar(&reason, "reason", "", "why, on one `line`")
	command.Flags().StringVar(&lasts, "for", "", "end after this `duration` (90s, 1h30m, 7d; default: when it is cleared)")
	completeWords(command, "reason")
	completeWords(command, "for")
	careful.addTo(command)
	addAuthorFlag(command, &author)
	c.addOperatorFlags(command)
	command.ValidArgsFunction = c.completeEndpoint
	return command
}

func parseLasts(text string) (*durationpb.Duration, error) {
	if text == "" {
		return nil, nil
	}
	lasts, ok := parseAgo(text)
	if !ok || lasts <= 0 {
		return nil, usageError{fmt.Errorf("--for %q: want a duration (90s, 1h30m, 7d)", text)}
	}
	return durationpb.New(lasts), nil
}

func newOverrideClear() *cobra.Command {
	var c client
	var target scope
	var author string
	var all bool
	command := &cobra.Command{
		Use:   "clear [CLUSTER [ADDRESS]]",
		Short: "Clear overrides, so that the checkers decide again",
		Long: `clear ends the override for exactly the target that you name. With --all it ends
all overrides within that target: those for the cluster, its localities and its
endpoints; without a name, all of them.`,
		Example: "  hdsd override clear web 10.0.0.7:8080\n  hdsd override clear web --all",
		Args:    endpointArgs,
		RunE: func(command *cobra.Command, args []string) error {
			cluster, address := c.subject(args)
			l, err := target.parse()
			switch {
			case err != nil:
				return err
			case cluster == "" && strings.Trim(target.locality, "/") == "" && !all:
				return usageError{errors.New("name the override's target as 'hdsd override list' shows it, or give --all")}
			}
			request := &hdsdv1.ClearOverridesRequest{
				Cluster: cluster, Address: address, Region: l.GetRegion(), Zone: l.GetZone(), SubZone: l.GetSubZone(), All: all, Author: authorOr(author),
			}
			return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
				warnFrozen(ctx, control, command.ErrOrStderr())
				answer, err := control.ClearOverrides(ctx, request)
				if err != nil {
					return err
				}
				for _, o := range answer.GetEnded() {
					say(command.OutOrStdout(), "cleared: %s\n", overrideLine(o))
				}
				if len(answer.GetEnded()) == 0 {
					sayLine(command.OutOrStdout(), "there is no such override: nothing has changed")
				}
				tellDurability(command.OutOrStdout(), answer)
				return nil
			})
		},
	}
	target.addTo(command)
	command.Flags().BoolVar(&all, "all", false, "all overrides within the target")
	addAuthorFlag(command, &author)
	c.addOperatorFlags(command)
	command.ValidArgsFunction = c.completeEndpoint
	return command
}

func newOverrideList() *cobra.Command {
	var c client
	c.empty = emptyTable{rows: "overrides", hint: "votes decide everywhere"}
	c.filter.noUnhealthy = "an override has no health of its own; 'hdsd endpoints --unhealthy' shows what is not healthy"
	command := &cobra.Command{
		Use:   "list",
		Short: "Show the overrides in force",
		Long: `list shows the overrides in force: whose health they replace, since when and
until when, by whom and why.`,
		Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			p, err := c.printer(command, overridesHeader, overrideColumns...)
			if err != nil {
				return err
			}
			return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
				warnFrozen(ctx, control, command.ErrOrStderr())
				return printAll(p, c.limit, filtered(func(o *hdsdv1.Override) bool { return c.filter.matches(o.GetLocality()) }, func(token string, size int32) ([]*hdsdv1.Override, string, error) {
					answer, err := control.ListOverrides(ctx, &hdsdv1.ListOverridesRequest{PageToken: token, PageSize: size})
					return answer.GetOverrides(), answer.GetNextPageToken(), err
				}), overrideCells)
			})
		},
	}
	c.addFlags(command)
	return command
}

func overrideCells(o *hdsdv1.Override) []string {
	return []string{
		o.GetCluster(), o.GetAddress(), partialLocality(o.GetLocality()), o.GetHealth().String(), number(o.GetEndpoints()),
		timeCell(o.GetSince()), timeCell(o.GetUntil()), o.GetAuthor(), o.GetReason(), o.GetVersion(),
	}
}

// partialLocality returns a locality with any parts missing, in the form of --locality.
func partialLocality(l *corev3.Locality) string {
	return strings.TrimRight(l.GetRegion()+"/"+l.GetZone()+"/"+l.GetSubZone(), "/")
}

// overrideLine describes an override on one line.
func overrideLine(o *hdsdv1.Override) string {
	subject := strings.TrimSpace(health.TitleOf(o.GetCluster(), o.GetVersion()) + " " + o.GetAddress())
	if subject == "" {
		subject = "everything"
	}
	if locality := partialLocality(o.GetLocality()); locality != "" {
		subject += " in " + locality
	}
	done := map[corev3.HealthStatus]string{
		corev3.HealthStatus_DRAINING: "drained", corev3.HealthStatus_HEALTHY: "forced healthy", corev3.HealthStatus_UNHEALTHY: "forced unhealthy",
	}[o.GetHealth()]
	end := ""
	if o.GetUntil() != nil {
		end = " until " + o.GetUntil().AsTime().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s: %s since %s%s by %s: %s", subject, done, timeCell(o.GetSince()), end, o.GetAuthor(), o.GetReason())
}
