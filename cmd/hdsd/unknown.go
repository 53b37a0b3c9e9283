package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/printable"
	"hdsd/internal/suggest"
)

// knownCheckers returns the ids of all checkers that the coordinator knows.
func (c *client) knownCheckers(ctx context.Context) ([]string, error) {
	connection, err := c.connect()
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	query := hdsdv1.NewQueryClient(connection)
	var ids []string
	for token := ""; ; {
		answer, err := query.ListCheckers(ctx, &hdsdv1.ListCheckersRequest{PageToken: token, PageSize: pageSize})
		if err != nil {
			return nil, err
		}
		for _, checker := range answer.GetCheckers() {
			ids = append(ids, checker.GetId())
		}
		if token = answer.GetNextPageToken(); token == "" {
			return ids, nil
		}
	}
}

// warnUnknown warns that a trusted or distrusted checker is unknown: it may connect
// later, or the id is misspelt.
func (c *client) warnUnknown(ctx context.Context, id string, w io.Writer) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	ids, err := c.knownCheckers(ctx)
	if err != nil || slices.Contains(ids, id) {
		return
	}
	say(w, "hdsd: no checker %q is known now%s ('hdsd checkers judge %s' takes it back)\n", id, suggest.DidYouMean(id, ids), id)
}

// listUnknownTrust lists the trust set for unknown checkers.
func (c *client) listUnknownTrust(command *cobra.Command, ids map[string]bool) {
	ctx, cancel := context.WithTimeout(command.Context(), lookTimeout)
	defer cancel()
	connection, err := c.connect()
	if err != nil {
		return
	}
	defer connection.Close()
	// A user without access to trust still sees the checkers.
	answer, _ := hdsdv1.NewControlClient(connection).ListTrust(ctx, &hdsdv1.ListTrustRequest{})
	for _, t := range answer.GetTrust() {
		if !ids[t.GetChecker()] {
			say(command.ErrOrStderr(), "hdsd: not known now: %s\n", printable.Text(trustLine(t)))
		}
	}
}

// completeChecker offers the ids of checkers, or nothing if the coordinator does not
// answer soon.
func (c *client) completeChecker(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if useContext(command) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
	defer cancel()
	ids, _ := c.knownCheckers(ctx) // on an error there is nothing to offer
	return slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, begun) }), cobra.ShellCompDirectiveNoFileComp
}
