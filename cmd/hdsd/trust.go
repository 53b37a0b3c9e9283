package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

func newTrust(name, short string, word hdsdv1.Trust_Word) *cobra.Command {
	var c client
	var reason, author string
	command := &cobra.Command{
		Use:   name + " ID --reason TEXT",
		Short: short,
		Long: short + `, from now on and over restarts, until
'hdsd checkers judge ID' returns it to automatic trust. The checker need not be
connected.`,
		Example: fmt.Sprintf("  hdsd checkers %s checker-7 --reason \"it is behind the old firewall\"", name),
		Args:    oneChecker,
		RunE: func(command *cobra.Command, args []string) error {
			if reason == "" {
				return usageError{errors.New("--reason TEXT is missing: say why, for other operators")}
			}
			request := &hdsdv1.SetTrustRequest{Checker: args[0], Word: word, Reason: reason, Author: authorOr(author)}
			return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
				answer, err := control.SetTrust(ctx, request)
				if err != nil {
					return err
				}
				c.warnUnknown(ctx, args[0], command.ErrOrStderr())
				sayLine(command.OutOrStdout(), trustLine(answer.GetTrust()))
				if replaced := answer.GetReplaced(); replaced != nil {
					say(command.OutOrStdout(), "it replaces: %s\n", trustLine(replaced))
				}
				tellDurability(command.OutOrStdout(), answer)
				return nil
			})
		},
	}
	command.Flags().StringVar(&reason, "reason", "", "why, on one `line`")
	completeWords(command, "reason")
	command.ValidArgsFunction = c.completeChecker
	addAuthorFlag(command, &author)
	c.addOperatorFlags(command)
	return command
}

func newJudge() *cobra.Command {
	var c client
	var author string
	command := &cobra.Command{
		Use:   "judge ID",
		Short: "Return a checker to automatic trust",
		Long: `judge ends what an operator said of a checker: from now on hdsd itself finds out
whether its votes agree with those of its peers.`,
		Args: oneChecker,
		RunE: func(command *cobra.Command, args []string) error {
			return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
				answer, err := control.ClearTrust(ctx, &hdsdv1.ClearTrustRequest{Checker: args[0], Author: authorOr(author)})
				switch {
				case err != nil:
					return err
				case answer.GetEnded() == nil:
					say(command.OutOrStdout(), "no trust is set for %s: nothing has changed\n", args[0])
				default:
					say(command.OutOrStdout(), "cleared: %s\n", trustLine(answer.GetEnded()))
				}
				tellDurability(command.OutOrStdout(), answer)
				return nil
			})
		},
	}
	command.ValidArgsFunction = c.completeChecker
	addAuthorFlag(command, &author)
	c.addOperatorFlags(command)
	return command
}

func oneChecker(_ *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return errors.New("name one checker by its id, as 'hdsd checkers' shows it")
	}
	return nil
}

func trustLine(t *hdsdv1.Trust) string {
	return fmt.Sprintf("%s is %s since %s by %s: %s",
		t.GetChecker(), strings.ToLower(t.GetWord().String()), timeCell(t.GetSince()), t.GetAuthor(), t.GetReason())
}
