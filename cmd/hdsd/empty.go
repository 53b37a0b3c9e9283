package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/timestamppb"

	"hdsd/coordinator/attention"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/printable"
	"hdsd/internal/table"
)

// emptyTable is the text for a table without rows.
type emptyTable struct {
	rows     string // what the table lists, in the plural
	hint     string // reason why there are no rows, or advice; omitted with filters
	recorded bool   // the rows come from the history: the text has its beginning
}

// filterFlags are the flags that omit rows.
var filterFlags = map[string]bool{
	"unhealthy": true, "locality": true, "checker": true, "health": true, "kind": true, "since": true, "until": true, "open": true, "as-of": true,
}

// givenFilters returns the flags of a command that omit rows, with their values.
func givenFilters(command *cobra.Command) (flags []string) {
	command.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case !filterFlags[f.Name]:
		case f.Value.Type() == "bool":
			flags = append(flags, "--"+f.Name)
		default:
			flags = append(flags, "--"+f.Name+" "+attention.Quoted(f.Value.String()))
		}
	})
	return flags
}

// explainEmpty explains a table without rows, unless the user knows the reason. began returns
// the start of the history; nil: unknown.
func (c *client) explainEmpty(began func() *timestamppb.Timestamp) {
	if !c.isTable() || c.empty.rows == "" || c.shown.Load() > 0 || c.explained {
		return
	}
	c.explained = true
	say(c.errors, "hdsd: %s\n", strings.Join(clauses(c.emptyText(began), statusWidth-len("hdsd: ")), "\n      "))
}

// clauses breaks a text into lines of some columns, behind semicolons if possible.
func clauses(text string, columns int) (lines []string) {
	line := ""
	for _, clause := range strings.SplitAfter(printable.Text(text), "; ") {
		if table.TextWidth(line+strings.TrimSpace(clause)) > columns && line != "" {
			lines, line = append(lines, table.Wrap(strings.TrimSpace(line), columns)...), ""
		}
		line += clause
	}
	return append(lines, table.Wrap(line, columns)...)
}

// emptyText returns the reason why there are no rows.
func (c *client) emptyText(began func() *timestamppb.Timestamp) string {
	text := "no " + c.empty.rows
	if c.cluster != "" {
		text += " of " + strings.TrimSpace(c.cluster+" "+c.address)
	}
	if len(c.filters) > 0 {
		text += " with " + strings.Join(c.filters, " ")
	} else if c.empty.hint != "" {
		text += ": " + c.empty.hint
	}
	if c.empty.recorded {
		if begin := began(); begin != nil {
			text += "; the history begins at " + rfc3339(begin)
		}
	}
	return text
}

func rfc3339(t *timestamppb.Timestamp) string { return t.AsTime().UTC().Format(time.RFC3339) }

// historyBegan returns the start of the history; nil if the coordinator does not answer.
func historyBegan(ctx context.Context, query hdsdv1.QueryClient) *timestamppb.Timestamp {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	now, err := query.GetStatus(ctx, &hdsdv1.GetStatusRequest{})
	if err != nil {
		return nil
	}
	return now.GetHistory().GetOldest()
}

// beforeHistory is the error of a query for a time before the history.
func beforeHistory(flag, value string, began *timestamppb.Timestamp) error {
	return fmt.Errorf("--%s %s: the history begins later, at %s: ask for a later time", flag, value, rfc3339(began))
}

// removalText reports that no source has a cluster, and when its source removed it.
func removalText(cluster string, r *hdsdv1.Removal) string {
	hint := "; its past: hdsd history " + attention.Quoted(cluster)
	if r.GetTime() == nil {
		return fmt.Sprintf("no source has the cluster %q now, and when it was removed is not recorded%s", cluster, hint)
	}
	return fmt.Sprintf("no cluster %q any more: it was removed at %s (%s), %s%s", cluster, rfc3339(r.GetTime()), table.Ago(timeCell(r.GetTime()), now()), r.GetText(), hint)
}
