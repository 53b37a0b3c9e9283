package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

var receiverHeader = []string{"name", "type", "open", "queued", "last_success", "failing_since", "last_error", "dropped", "dead_letters"}

// receiverColumns fit on a line, apart from an error.
var receiverColumns = []string{"name", "type", "open", "queued", "last_success", "failing_since", "dropped", "last_error"}

func newNotify() *cobra.Command {
	command := &cobra.Command{
		Use:   "notify list|test",
		Short: "List who is notified of what is wrong, and try it",
		Long: `notify is about the receivers of notifications: Alertmanagers and webhooks that
hdsd tells of what needs attention.`,
		Args: knownCommand,
		RunE: func(command *cobra.Command, _ []string) error {
			return usageError{errors.New("name what to do: list or test")}
		},
	}
	command.AddCommand(newNotifyList(), newNotifyTest())
	return command
}

func newNotifyList() *cobra.Command {
	var c client
	c.empty = emptyTable{rows: "receivers", hint: "'notify' in the configuration names them"}
	c.filter.noLocality = "receivers have no locality; 'hdsd incidents --locality' has outages by theirs"
	command := &cobra.Command{
		Use:   "list",
		Short: "List who is notified of what is wrong, and how that goes",
		Long: `list shows each receiver of the configuration: how many notifications it has
that are not over, how many wait to be sent, since when it takes nothing and
why, and with -o wide the latest that were given up, newest first.`,
		Example: "  hdsd notify list\n  hdsd notify list -o json",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			p, err := c.printer(command, receiverHeader, receiverColumns...)
			if err != nil {
				return err
			}
			return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
				return printAll(p, c.limit, filtered(func(r *hdsdv1.Receiver) bool { return !c.filter.unhealthy || r.GetFailingSince() != nil }, func(string, int32) ([]*hdsdv1.Receiver, string, error) {
					answer, err := control.ListReceivers(ctx, &hdsdv1.ListReceiversRequest{})
					return answer.GetReceivers(), "", err
				}), receiverCells)
			})
		},
	}
	c.addFlags(command)
	return command
}

// shownLetters bounds the dead letters of a receiver in a table.
const shownLetters = 3

func receiverCells(r *hdsdv1.Receiver) []string {
	var letters []string
	for _, d := range r.GetDeadLetters()[:min(len(r.GetDeadLetters()), shownLetters)] {
		letters = append(letters, timeCell(d.GetTime())+" "+d.GetSummary()+": "+d.GetError())
	}
	return []string{
		r.GetName(), r.GetType(), strconv.Itoa(int(r.GetOpen())), strconv.Itoa(int(r.GetQueued())), timeCell(r.GetLastSuccess()),
		timeCell(r.GetFailingSince()), r.GetLastError(), strconv.FormatUint(r.GetDropped(), 10), strings.Join(letters, "; "),
	}
}

func newNotifyTest() *cobra.Command {
	var c client
	var author string
	command := &cobra.Command{
		Use:   "test NAME",
		Short: "Send a marked notification to a receiver, and show what it answers",
		Long: `test has the coordinator send a notification of kind TEST to a receiver of its
configuration, at once and once, and prints what the receiver answered. It fails
if the receiver does not take it.`,
		Example: "  hdsd notify test oncall",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return errors.New("name one receiver, as 'hdsd notify list' shows it")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
				answer, err := control.NotifyTest(ctx, &hdsdv1.NotifyTestRequest{Name: args[0], Author: authorOr(author)})
				if err != nil {
					return err
				}
				if !answer.GetOk() {
					return errors.New(args[0] + " did not take the test: " + answer.GetAnswer())
				}
				say(command.OutOrStdout(), "%s took the test: %s\n", args[0], answer.GetAnswer())
				return nil
			})
		},
	}
	addAuthorFlag(command, &author)
	c.addOperatorFlags(command)
	command.ValidArgsFunction = cobra.NoFileCompletions
	return command
}
