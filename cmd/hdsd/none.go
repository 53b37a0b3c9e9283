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
	"hdsd/internal/table"
)

// none is what a table without rows says.
type none struct {
	what string // it lists, in the plural
	why  string // there are none, or what to do; not said where flags leave all out
	past bool   // it lists what is recorded: since when, is said, too
}

// narrowing are the flags that leave rows out.
var narrowing = map[string]bool{
	"unhealthy": true, "locality": true, "checker": true, "health": true, "kind": true, "since": true, "until": true, "open": true, "as-of": true,
}

// narrowed returns the flags of a command that leave rows out, as they were given.
func narrowed(command *cobra.Command) (given []string) {
	command.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case !narrowing[f.Name]:
		case f.Value.Type() == "bool":
			given = append(given, "--"+f.Name)
		default:
			given = append(given, "--"+f.Name+" "+attention.Quoted(f.Value.String()))
		}
	})
	return given
}

// sayNone says why a table has no rows, unless it has some or that was said. began tells when the
// history began.
func (c *client) sayNone(began func() *timestamppb.Timestamp) {
	if !c.isTable() || c.none.what == "" || c.shown.Load() > 0 || c.told {
		return
	}
	c.told = true
	say(c.errors, "hdsd: %s\n", c.noneText(began))
}

// noneText says why there is nothing to show.
func (c *client) noneText(began func() *timestamppb.Timestamp) string {
	text := "no " + c.none.what
	if c.cluster != "" {
		text += " of " + strings.TrimSpace(c.cluster+" "+c.address)
	}
	if len(c.narrowing) > 0 {
		text += " with " + strings.Join(c.narrowing, " ")
	} else if c.none.why != "" {
		text += ": " + c.none.why
	}
	if c.none.past {
		if at := began(); at != nil {
			text += "; the history begins at " + rfc3339(at)
		}
	}
	return text
}

func rfc3339(t *timestamppb.Timestamp) string { return t.AsTime().UTC().Format(time.RFC3339) }

// historyBegan asks when the history began; nil if the coordinator does not answer.
func historyBegan(ctx context.Context, query hdsdv1.QueryClient) *timestamppb.Timestamp {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	now, err := query.GetStatus(ctx, &hdsdv1.GetStatusRequest{})
	if err != nil {
		return nil
	}
	return now.GetHistory().GetOldest()
}

// beforeHistory is the error of a question about a time of which nothing is recorded.
func beforeHistory(flag, asked string, began *timestamppb.Timestamp) error {
	return fmt.Errorf("--%s %s: the history begins later, at %s: what was before is not known", flag, asked, rfc3339(began))
}

// removalText says that no source has a cluster any more, and when it was removed.
func removalText(cluster string, r *hdsdv1.Removal) string {
	past := "; what was recorded of it: hdsd history " + attention.Quoted(cluster)
	if r.GetTime() == nil {
		return fmt.Sprintf("no source has the cluster %q now, and when it was removed is not recorded%s", cluster, past)
	}
	return fmt.Sprintf("no cluster %q any more: it was removed at %s (%s), %s%s", cluster, rfc3339(r.GetTime()), table.Ago(timeCell(r.GetTime()), now()), r.GetText(), past)
}
