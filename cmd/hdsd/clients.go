package main

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

var clientsHeader = []string{
	"id", "kind", "connected", "type", "resources", "synced", "stale", "error", "last_ack", "last_error",
	"polls_by", "last_poll", "version_given", "version_held", "unasked", "replica",
}

// clientColumns are those that fit on a line.
var clientColumns = []string{"id", "kind", "connected", "replica", "type", "resources", "synced", "stale", "error", "last_ack", "unasked"}

func newClients() *cobra.Command {
	var c client
	c.empty = emptyTable{rows: "clients", hint: "nobody is connected; 'hdsd bootstrap client' prints the configuration of an Envoy that is one"}
	c.filter.noLocality = "clients have no locality; 'hdsd checkers --locality' has checkers by theirs"
	command := &cobra.Command{
		Use:   "clients",
		Short: "Show who is connected, and whether each has what it asked for",
		Long: `clients shows data planes (subscriber) and checkers, with a row for each type
of resource: how many it asked for, how many it has (synced), does not have yet
(stale) and has refused (error). Those that refuse come first, then those that
lack something.

A data plane that polls, by REST or unary gRPC (FETCH), is shown until five
minutes after its last poll. An upstream is a management server, by the name of
its source; there, hdsd is the one that has and refuses. If a data plane asks
for a type that hdsd does not serve, the row says what to do. Unasked are the
checked clusters that a data plane took without asking hdsd for their
assignments: it has neither health nor checks of them.`,
		Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			p, err := c.printer(command, clientsHeader, clientColumns...)
			if err != nil {
				return err
			}
			return c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
				pages := filtered(func(k *hdsdv1.Client) bool { return !c.filter.unhealthy || isBehind(k) }, func(token string, size int32) ([]*hdsdv1.Client, string, error) {
					answer, err := query.ListClients(ctx, &hdsdv1.ListClientsRequest{PageToken: token, PageSize: size})
					return answer.GetClients(), answer.GetNextPageToken(), err
				})
				if c.isTable() {
					pages = sorted(c.limit, pages, worseClient)
				}
				return printAll(p, c.limit, pages, clientCells)
			})
		},
	}
	c.addFlags(command)
	return command
}

func clientCells(c *hdsdv1.Client) []string {
	return []string{
		c.GetId(), c.GetKind(), strconv.FormatBool(c.GetConnected()), typeCell(c.GetTypeUrl()), number(c.GetResources()),
		number(c.GetSynced()), number(c.GetStale()), number(c.GetError()), timeCell(c.GetLastAck()), c.GetLastError(),
		c.GetPoll().GetBy(), timeCell(c.GetPoll().GetTime()), c.GetPoll().GetGiven(), c.GetPoll().GetHeld(), number(c.GetUnasked()), c.GetReplica(),
	}
}

// typeCell writes the last part of a type's name, which tells it apart.
func typeCell(typeURL string) string { return typeURL[strings.LastIndexByte(typeURL, '.')+1:] }

// isBehind reports whether a client is gone, or lacks something that it asked for.
func isBehind(c *hdsdv1.Client) bool {
	return !c.GetConnected() || c.GetStale() > 0 || c.GetError() > 0 || c.GetUnasked() > 0
}

// worseClient orders clients: those that refuse, those that are gone or lack something, and the
// others, each by name.
func worseClient(a, b *hdsdv1.Client) int {
	rank := func(c *hdsdv1.Client) int {
		switch {
		case c.GetError() > 0:
			return 0
		case isBehind(c):
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.GetId(), b.GetId()), cmp.Compare(a.GetReplica(), b.GetReplica()))
}
