package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

func newFreeze() *cobra.Command {
	var c client
	var reason, author, publish string
	var show bool
	command := &cobra.Command{
		Use:   "freeze --reason TEXT",
		Short: "Stop publishing verdicts until unfreeze",
		Long: `freeze stops publishing verdicts. hdsd goes on checking, deciding and recording.
By default, data planes get what the sources say, and clusters with their own
health checks. With --publish held, they keep the health of this moment; new
endpoints have the initial_health of the configuration. Overrides stay in force,
and you can set and clear them. None expires: an override whose time is over
ends with the freeze. A freeze lasts over restarts, until 'hdsd unfreeze'.
Freezing again replaces the reason.`,
		Example: "  hdsd freeze --reason \"moving the checkers\"\n  hdsd freeze --reason \"is it us?\" --publish held\n  hdsd freeze --show",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if show {
				return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
					state, err := control.GetFreeze(ctx, &hdsdv1.GetFreezeRequest{})
					if err == nil {
						sayLine(command.OutOrStdout(), freezeText(state))
					}
					return err
				})
			}
			if reason == "" {
				return usageError{errors.New("--reason TEXT is missing: say why, for other operators")}
			}
			publishes, err := parsePublish(publish)
			if err != nil {
				return err
			}
			request := &hdsdv1.FreezeRequest{Reason: reason, Author: authorOr(author), Publish: publishes}
			return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
				answer, err := control.Freeze(ctx, request)
				if err == nil {
					tellFreeze(command.OutOrStdout(), answer)
				}
				return err
			})
		},
	}
	command.Flags().StringVar(&reason, "reason", "", "why, on one `line`")
	command.Flags().StringVar(&publish, "publish", "sources", "what data planes get: sources (the sources' own health) or held (the health at this moment)")
	command.Flags().BoolVar(&show, "show", false, "change nothing, show whether hdsd is frozen")
	addAuthorFlag(command, &author)
	c.addOperatorFlags(command)
	completeWords(command, "publish", "sources", "held")
	completeWords(command, "reason")
	return command
}

func newUnfreeze() *cobra.Command {
	var c client
	var author string
	command := &cobra.Command{
		Use:   "unfreeze",
		Short: "Publish verdicts again",
		Long: `unfreeze publishes the present verdicts at once, and each new one from now on.
Overrides whose time is over end.`,
		Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
				answer, err := control.Unfreeze(ctx, &hdsdv1.UnfreezeRequest{Author: authorOr(author)})
				switch {
				case err != nil:
					return err
				case answer.GetEnded() == nil:
					sayLine(command.OutOrStdout(), "was not frozen: nothing has changed")
				default:
					say(command.OutOrStdout(), "verdicts are published again; was %s\n", freezeLine(answer.GetEnded()))
				}
				tellDurability(command.OutOrStdout(), answer)
				return nil
			})
		},
	}
	addAuthorFlag(command, &author)
	c.addOperatorFlags(command)
	return command
}

func (c *client) addOperatorFlags(command *cobra.Command) { c.addConnection(command) }

func addAuthorFlag(command *cobra.Command, author *string) {
	command.Flags().StringVar(author, "author", "", "your `name` (default: USER@HOST)")
	completeWords(command, "author")
}

// operate connects and calls do, and turns errors into advice.
func (c *client) operate(ctx context.Context, do func(context.Context, hdsdv1.ControlClient) error) error {
	connection, err := c.connect()
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := do(ctx, hdsdv1.NewControlClient(connection)); err != nil {
		return c.advise(ctx, hdsdv1.NewQueryClient(connection), err)
	}
	c.explainEmpty(nil)
	return nil
}

func authorOr(author string) string {
	if author != "" {
		return author
	}
	if account, err := user.Current(); err == nil {
		if host, err := os.Hostname(); err == nil {
			return account.Username + "@" + host
		}
		return account.Username
	}
	return "" // the coordinator records it as unknown
}

func parsePublish(text string) (hdsdv1.FreezeState_Publish, error) {
	switch text {
	case "sources":
		return hdsdv1.FreezeState_SOURCES, nil
	case "held":
		return hdsdv1.FreezeState_HELD, nil
	}
	return 0, usageError{fmt.Errorf("--publish %q: want sources or held", text)}
}

// tellDurability warns if a change is in force, but not on disk.
func tellDurability(w io.Writer, answer interface{ GetNotDurable() string }) {
	if reason := answer.GetNotDurable(); reason != "" {
		say(w, "in force, not durable: %s\n", reason)
	}
}

func tellFreeze(w io.Writer, answer *hdsdv1.FreezeResponse) {
	sayLine(w, freezeText(answer.GetFreeze()))
	tellDurability(w, answer)
	if replaced := answer.GetReplaced(); replaced != nil {
		say(w, "it was frozen already, by %s: %s\n", replaced.GetAuthor(), replaced.GetReason())
	}
}

// freezeText describes a freeze in full.
func freezeText(f *hdsdv1.FreezeState) string {
	if !f.GetFrozen() {
		return "not frozen"
	}
	published := "what the sources say"
	if f.GetPublish() == hdsdv1.FreezeState_HELD {
		published = "the health as it stood then"
	}
	return freezeLine(f) + "\ndata planes get " + published + "\noverrides stay in force, and none expires before 'hdsd unfreeze'"
}

func freezeLine(f *hdsdv1.FreezeState) string {
	return fmt.Sprintf("frozen since %s by %s: %s", timeCell(f.GetSince()), f.GetAuthor(), f.GetReason())
}

// warnFrozen warns that data planes do not get the verdict or override because of a freeze.
func warnFrozen(ctx context.Context, control hdsdv1.ControlClient, w io.Writer) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	// If the coordinator does not answer, the command itself reports that.
	if state, err := control.GetFreeze(ctx, &hdsdv1.GetFreezeRequest{}); err == nil && state.GetFrozen() {
		say(w, "hdsd: %s\n", freezeLine(state))
	}
}
