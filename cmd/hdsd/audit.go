package main

import (
	"context"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

var auditHeader = []string{"time", "identity", "address", "author", "action", "target", "before", "after", "reason", "cluster_version"}

// auditColumns are the same, with the version beside the target.
var auditColumns = []string{"time", "identity", "address", "author", "action", "target", "cluster_version", "before", "after", "reason"}

func newAudit() *cobra.Command {
	var c client
	c.empty = emptyTable{rows: "changes by operators", hint: "nobody has made one that is kept"}
	c.filter.noUnhealthy = "a change by an operator has no health; 'hdsd history --unhealthy' shows what went down"
	c.filter.noLocality = "a change by an operator has no locality; 'hdsd history --locality' shows changes of health by theirs"
	var since, until string
	var newestFirst bool
	command := &cobra.Command{
		Use:   "audit",
		Short: "Show who changed what: overrides, freezes, trust, backups",
		Long: `audit shows each change that was made to a running hdsd. The identity is what
was verified of the caller, by certificate or token; author and reason are what
the caller said. The latest 50,000 changes are kept.`,
		Example: "  hdsd audit --since 1d\n  hdsd audit --newest-first --limit 5",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			request := &hdsdv1.ListAuditRequest{NewestFirst: newestFirst}
			var err error
			if request.StartTime, request.EndTime, err = parsePeriod(since, until, now()); err != nil {
				return err
			}
			p, err := c.printer(command, auditHeader, auditColumns...)
			if err != nil {
				return err
			}
			return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
				return printAll(p, c.limit, func(token string, size int32) ([]*hdsdv1.AuditEntry, string, error) {
					request.PageToken, request.PageSize = token, size
					answer, err := control.ListAudit(ctx, request)
					return answer.GetEntries(), answer.GetNextPageToken(), err
				}, auditCells)
			})
		},
	}
	c.addFlags(command)
	command.Flags().StringVar(&since, "since", "", "from this `time` on ("+timeForms+")")
	command.Flags().StringVar(&until, "until", "", "before this `time` (as --since)")
	command.Flags().BoolVar(&newestFirst, "newest-first", false, "newest first instead of oldest first")
	completeWords(command, "since")
	completeWords(command, "until")
	return command
}

func auditCells(e *hdsdv1.AuditEntry) []string {
	return []string{
		timeCell(e.GetTime()), e.GetIdentity(), e.GetAddress(), e.GetAuthor(), e.GetAction(), e.GetTarget(), e.GetBefore(), e.GetAfter(), e.GetReason(), e.GetVersion(),
	}
}
