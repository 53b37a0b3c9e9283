package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

func newAnnotate() *cobra.Command {
	var c client
	var cluster, timeText, author string
	command := &cobra.Command{
		Use:   "annotate TEXT",
		Short: "Put a note into the history",
		Long: `annotate puts a note into the history, such as a deployment or a network
change, where 'hdsd history --kind all' shows it among what happened. A note
stays as long as the rest of the history.`,
		Example: "  hdsd annotate \"rolled out v7\" --cluster web\n  hdsd annotate \"switch replaced in zone b\" --at 14:05",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("annotate takes one argument, TEXT: put it in quotes")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			request := &hdsdv1.AnnotateRequest{Text: args[0], Cluster: cluster, Author: authorOr(author)}
			var err error
			if request.Time, err = parseTime("at", timeText, now()); err != nil {
				return err
			}
			return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
				answer, err := control.Annotate(ctx, request)
				if err != nil {
					return err
				}
				subject := "all clusters"
				if cluster != "" {
					subject = "cluster " + cluster
				}
				say(command.OutOrStdout(), "noted at %s on %s, by %s\n", timeCell(answer.GetEvent().GetTime()), subject, answer.GetEvent().GetAuthor())
				tellDurability(command.OutOrStdout(), answer)
				return nil
			})
		},
	}
	command.Flags().StringVar(&cluster, "cluster", "", "`name` of the cluster that it concerns")
	command.Flags().StringVar(&timeText, "at", "", "when it happened (`time`: "+timeForms+"; default: now)")
	addAuthorFlag(command, &author)
	c.addOperatorFlags(command)
	completeWords(command, "at")
	completeWords(command, "cluster")
	return command
}
