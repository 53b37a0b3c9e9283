package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

var checkersHeader = []string{"id", "locality", "version", "connected", "abilities", "endpoints", "specifier", "last_report", "trusted", "distrust_reason", "share", "checks_per_second", "plan_digest", "operator", "blind_reason", "probation", "lost_since", "lost_reason", "replica"}

// checkerColumns fit on a line.
var checkerColumns = []string{"id", "locality", "version", "connected", "replica", "trusted", "endpoints", "specifier", "last_report", "lost_since"}

func newCheckers() *cobra.Command {
	var c client
	c.empty = emptyTable{rows: "checkers", hint: "none is connected, and none was lost lately; 'hdsd bootstrap checker' prints the configuration of an Envoy that is one"}
	command := &cobra.Command{
		Use:   "checkers",
		Short: "Show the checkers, what each has to check, and whether it does",
		Long: `checkers shows each checker: what it has to check, whether it follows its
specifier, when it last reported, and whether its votes are believed. Lost
checkers stay in the list for 24 hours.`,
		Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			p, err := c.printer(command, checkersHeader, checkerColumns...)
			if err != nil {
				return err
			}
			ids := map[string]bool{}
			err = c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
				return printAll(p, c.limit, filtered(c.keepsChecker, func(token string, size int32) ([]*hdsdv1.Checker, string, error) {
					answer, err := query.ListCheckers(ctx, &hdsdv1.ListCheckersRequest{Lost: true, PageToken: token, PageSize: size})
					for _, checker := range answer.GetCheckers() {
						ids[checker.GetId()] = true
					}
					return answer.GetCheckers(), answer.GetNextPageToken(), err
				}), checkerCells)
			})
			if err == nil && c.limit == 0 {
				c.listUnknownTrust(command, ids)
			}
			return err
		},
	}
	c.addFlags(command)
	command.AddCommand(
		newTrust("distrust", "Ignore all votes of a checker", hdsdv1.Trust_DISTRUSTED),
		newTrust("trust", "Never doubt a checker, whatever its peers say", hdsdv1.Trust_TRUSTED),
		newJudge(),
	)
	return command
}

func checkerCells(c *hdsdv1.Checker) []string {
	specifier := ""
	if c.GetConnected() {
		specifier = c.GetSpecifier()
	}
	return []string{
		c.GetId(), localityCell(c.GetLocality()), c.GetVersion(), strconv.FormatBool(c.GetConnected()),
		strings.Join(c.GetAbilities(), ","), number(c.GetAssignedEndpoints()), specifier,
		timeCell(c.GetLastReport()), strconv.FormatBool(c.GetTrusted()), c.GetDistrustReason(), number(c.GetShare()), rateCell(c), c.GetPlanDigest(), trustCell(c.GetOperator()), c.GetBlindReason(), c.GetProbationReason(), timeCell(c.GetLostSince()), c.GetLostReason(), c.GetReplica(),
	}
}

// trustCell formats an operator's trust in a checker.
func trustCell(t *hdsdv1.Trust) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf("%s by %s: %s", strings.ToLower(t.GetWord().String()), t.GetAuthor(), t.GetReason())
}

// rateCell formats a checker's checks a second, and their limit.
func rateCell(c *hdsdv1.Checker) string {
	rate := strconv.FormatFloat(c.GetChecksPerSecond(), 'f', 1, 64)
	if c.MaxChecksPerSecond != nil {
		rate += " of " + strconv.FormatFloat(c.GetMaxChecksPerSecond(), 'f', -1, 64)
	}
	return rate
}

// keepsChecker reports whether the filter lets a checker pass.
func (c *client) keepsChecker(k *hdsdv1.Checker) bool {
	unwell := !k.GetConnected() || !k.GetTrusted() || k.GetBlindReason() != "" || len(k.GetCutPaths()) > 0
	return c.filter.matches(k.GetLocality()) && (!c.filter.unhealthy || unwell)
}
