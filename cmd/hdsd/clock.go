package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

func newClock() *cobra.Command {
	var c client
	command := &cobra.Command{
		Use:   "clock",
		Short: "Show whether hdsd doubts the clock of its machine",
		Long: `clock shows whether hdsd trusts the clock of its machine. hdsd doubts a clock
that jumps, or that is far ahead or behind at a start. Until it is right again,
or somebody confirms it, history ages by the time that passes while hdsd runs.
So a wrong clock deletes no history.`,
		Example: "  hdsd clock\n  hdsd clock confirm",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
				state, err := control.GetClock(ctx, &hdsdv1.GetClockRequest{})
				if err == nil {
					sayLine(command.OutOrStdout(), clockText(state))
				}
				return err
			})
		},
	}
	c.addOperatorFlags(command)
	command.AddCommand(newConfirmClock())
	return command
}

func newConfirmClock() *cobra.Command {
	var c client
	var author string
	command := &cobra.Command{
		Use:   "confirm",
		Short: "Say that the clock is right, so that it deletes old history again",
		Long: `confirm says that the clock of hdsd's machine is right, for example after the
machine was off for months. hdsd then deletes what is older than
history.retention by that clock. Look at the clock first: what a wrong one
deletes is lost.`,
		Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.operate(command.Context(), func(ctx context.Context, control hdsdv1.ControlClient) error {
				answer, err := control.ConfirmClock(ctx, &hdsdv1.ConfirmClockRequest{Author: authorOr(author)})
				switch {
				case err != nil:
					return err
				case !answer.GetBefore().GetDoubted():
					sayLine(command.OutOrStdout(), "the clock was not doubted: nothing has changed")
				default:
					sayLine(command.OutOrStdout(), "history ages by the clock again, which was doubted: it was "+clockJump(answer.GetBefore()))
				}
				return nil
			})
		},
	}
	addAuthorFlag(command, &author)
	c.addOperatorFlags(command)
	return command
}

func clockText(s *hdsdv1.ClockState) string {
	if !s.GetDoubted() {
		return fmt.Sprintf("the clock says %s and is believed", timeCell(s.GetClock()))
	}
	return fmt.Sprintf("the clock says %s and has been doubted since %s: it is %s\nhistory ages by steady time, and is not deleted by the clock; if the clock is right, say so: hdsd clock confirm",
		timeCell(s.GetClock()), timeCell(s.GetSince()), clockJump(s))
}

// clockJump says how far the clock is from steady time.
func clockJump(s *hdsdv1.ClockState) string {
	ahead := s.GetClock().AsTime().Sub(s.GetSteady().AsTime()).Round(time.Second)
	relation := "ahead of"
	if ahead < 0 {
		relation = "behind"
	}
	return fmt.Sprintf("%v %s steady time, %s", ahead.Abs(), relation, timeCell(s.GetSteady()))
}
