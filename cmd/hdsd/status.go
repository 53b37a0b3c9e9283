package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/printable"
	"hdsd/internal/table"
)

const (
	statusLines = 40 // fit on the screen, at most
	statusWidth = 80 // columns
)

func newStatus() *cobra.Command {
	var c client
	var check bool
	command := &cobra.Command{
		Use:   "status",
		Short: "Show on one screen how hdsd and what it checks are, and what needs attention",
		Long: `status shows how hdsd, the clusters, the endpoints and the checkers are, and what
needs attention, worst first, each with the command to go on with. With --check,
it exits 1 while something needs attention.`,
		Example: "  hdsd status\n  hdsd status --check\n  hdsd status -o json",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if c.output != "table" && c.output != "json" {
				return usageError{fmt.Errorf("--output %q: want table or json", c.output)}
			}
			return c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
				now, err := query.GetStatus(ctx, &hdsdv1.GetStatusRequest{})
				if err != nil {
					return err
				}
				if c.output == "json" {
					err = jsonPrinter{command.OutOrStdout()}.row(now, nil)
				} else {
					_, err = io.WriteString(command.OutOrStdout(), statusText(now))
				}
				if err == nil && check && len(now.GetAttention()) > 0 {
					err = errAttention
				}
				return err
			})
		},
	}
	c.addConnection(command)
	command.Flags().StringVarP(&c.output, "output", "o", "table", "table or json (an object)")
	completeWords(command, "output", "table", "json")
	command.Flags().BoolVar(&check, "check", false, "exit 1 while something needs attention")
	return command
}

// errAttention is why status --check fails.
var errAttention = errors.New("something needs attention: see above")

// statusText lays out the status.
func statusText(s *hdsdv1.GetStatusResponse) string {
	var out strings.Builder
	line := func(format string, args ...any) { say(&out, format+"\n", args...) }
	ready := "ready"
	if !s.GetReady() {
		ready = "NOT READY"
	}
	mode := s.GetMode().String()
	if s.GetFrozen() {
		mode += ", FROZEN"
	}
	line("version    hdsd %s, %s", printable.Text(s.GetVersion()), ready)
	line("mode       %s", mode)
	k := s.GetClusters()
	line("clusters   %d ok, %d some down, %d half down, %d all down, %d unobserved", k.GetOk(), k.GetSomeDown(), k.GetHalfDown(), k.GetAllDown(), k.GetUnobserved())
	e := s.GetEndpoints()
	line("endpoints  %d healthy, %d unhealthy, %d timeout, %d degraded, %d draining,", e.GetHealthy(), e.GetUnhealthy(), e.GetTimeout(), e.GetDegraded(), e.GetDraining())
	line("           %d unknown; %s", e.GetUnknown(), heldText(e.GetHeld()))
	if v := e.GetVoters(); len(v) == 4 {
		line("           believed votes: %d with none, %d with 1, %d with 2, %d with more", v[0], v[1], v[2], v[3])
	}
	h := s.GetCheckers()
	line("checkers   %d connected, %d doubted, %d silent, %d blind, %d lost in 24 h", h.GetConnected(), h.GetDoubted(), h.GetSilent(), h.GetBlind(), h.GetLost())
	all := s.GetAttention()
	if len(all) == 0 {
		line("attention  nothing needs attention")
		return out.String()
	}
	line("attention")
	room := statusLines - strings.Count(out.String(), "\n") - 1 // for how many more there are
	for n, a := range all {
		text := attentionText(a)
		if room -= strings.Count(text, "\n"); room < 0 {
			line("  and %d more: hdsd status -o json", len(all)-n+int(s.GetFurther()))
			return out.String()
		}
		say(&out, "%s", text)
	}
	if more := s.GetFurther(); more > 0 {
		line("  and %d more: hdsd status -o json", more)
	}
	return out.String()
}

// attentionText says what needs attention, since when, and how to go on. The command stays on
// one line, to be copied.
func attentionText(a *hdsdv1.Attention) string {
	text := printable.Text(a.GetKind()) + ": " + printable.Text(a.GetText())
	if a.GetSince() != nil {
		text += "; began " + table.Ago(timeCell(a.GetSince()), now())
	}
	const indent = "      "
	lines := table.Wrap(text, statusWidth-len(indent))
	return "  " + strings.Join(lines, "\n"+indent) + "\n" + indent + printable.Text(a.GetCommand()) + "\n"
}

// heldText says how many endpoints are held.
func heldText(n uint32) string {
	if n == 0 {
		return "0 held"
	}
	return fmt.Sprintf("%d HELD, without a believed vote", n)
}
