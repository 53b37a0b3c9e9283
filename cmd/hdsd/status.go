package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

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
		Short: "Show on one screen how all is, and what needs attention",
		Long: `status shows how hdsd, the clusters, the endpoints and the checkers are, which
clusters are not well, and what needs attention, worst first, each with the
command to go on with. With --check, it exits 1 while something needs attention.`,
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
					var worst []string
					if worst, err = worstClusters(ctx, query); err != nil {
						return err
					}
					_, err = io.WriteString(command.OutOrStdout(), statusText(now, worst))
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

// worstClusters says of the clusters that are not well how they are, the worst first.
func worstClusters(ctx context.Context, query hdsdv1.QueryClient) (all []string, err error) {
	answer, err := query.GetOverview(ctx, &hdsdv1.GetOverviewRequest{Limit: statusLists})
	for _, k := range answer.GetClusters() {
		switch k.GetState() {
		case "OK":
		case "UNOBSERVED":
			all = append(all, k.GetCluster()+": no endpoint has a believed vote")
		case "NONE_HEALTHY":
			all = append(all, fmt.Sprintf("%s: no endpoint is healthy, %d of %s down", k.GetCluster(), k.GetDown(), plural(int(k.GetEndpoints()), "endpoint")))
		case "UNCHECKED":
			all = append(all, k.GetCluster()+": no endpoint may be checked")
		default:
			all = append(all, fmt.Sprintf("%s: %d of %s down", k.GetCluster(), k.GetDown(), plural(int(k.GetEndpoints()), "endpoint")))
		}
	}
	return all, err
}

// statusText lays out the status, with clusters that are not well.
func statusText(s *hdsdv1.GetStatusResponse, worst []string) string {
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
	up := ""
	if s.GetStarted() != nil {
		up = ", up " + strings.TrimSuffix(table.Ago(timeCell(s.GetStarted()), now()), " ago")
	}
	line("version    hdsd %s, %s%s", printable.Text(s.GetVersion()), ready, up)
	line("mode       %s", mode)
	k := s.GetClusters()
	line("clusters   %d ok, %d some down, %d half down, %d all down, %d unobserved,", k.GetOk(), k.GetSomeDown(), k.GetHalfDown(), k.GetAllDown(), k.GetUnobserved())
	line("           %d none healthy, %d not checked", k.GetNoneHealthy(), k.GetUnchecked())
	statusList(&out, "", "hdsd clusters --unhealthy", int(k.GetSomeDown()+k.GetHalfDown()+k.GetAllDown()+k.GetUnobserved()+k.GetNoneHealthy()+k.GetUnchecked()), worst)
	e := s.GetEndpoints()
	line("endpoints  %d healthy%s, %d unhealthy%s,", e.GetHealthy(), portion(e.GetDegraded(), "degraded"), e.GetUnhealthy(), portion(e.GetTimeout(), "timeout"))
	line("           %d draining, %d unknown; %s", e.GetDraining(), e.GetUnknown(), heldText(e.GetHeld()))
	if v := e.GetVoters(); len(v) == 4 {
		line("           believed votes: %d with none, %d with 1, %d with 2, %d with more", v[0], v[1], v[2], v[3])
	}
	h := s.GetCheckers()
	line("checkers   %d connected, %d doubted, %d silent, %d blind, %d lost in 24 h", h.GetConnected(), h.GetDoubted(), h.GetSilent(), h.GetBlind(), h.GetLost())
	wholeText(&out, s)
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

// portion writes the part of a count that has a property, in parentheses; empty if it is 0.
func portion(n uint32, property string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d %s)", n, property)
}

// heldText says how many endpoints are held.
func heldText(n uint32) string {
	if n == 0 {
		return "0 held"
	}
	return fmt.Sprintf("%d HELD, without a believed vote", n)
}

// statusLists is how many clusters, zones and sources the status shows.
const statusLists = 4

// wholeText lays out the checkers by zone, the sources, the data planes and the history.
func wholeText(out *strings.Builder, s *hdsdv1.GetStatusResponse) {
	var zones, sources []string
	for _, z := range s.GetCheckersByZone() {
		text := fmt.Sprintf("%s: %d", cmp.Or(strings.Trim(z.GetZone(), "/"), "no zone"), z.GetConnected())
		if z.GetTroubled() > 0 {
			text += fmt.Sprintf(", %d doubted or silent", z.GetTroubled())
		}
		if z.GetLost() > 0 {
			text += fmt.Sprintf(", %d lost", z.GetLost())
		}
		zones = append(zones, text)
	}
	for _, f := range s.GetSources() {
		text := fmt.Sprintf("%s: %s, %s", f.GetName(), plural(int(f.GetClusters()), "cluster"), plural(int(f.GetEndpoints()), "endpoint"))
		switch {
		case f.GetBroken():
			text += "; BROKEN: see SOURCE_BROKEN"
		case f.GetProblem() != "":
			text += "; " + f.GetProblem()
		}
		sources = append(sources, text)
	}
	statusList(out, "", "hdsd checkers", len(zones), zones)
	statusList(out, "sources", "hdsd source list", len(sources), sources)
	if p := s.GetDataPlanes(); p != nil {
		say(out, "planes     %d synced, %d behind, %d refusing\n", p.GetSynced(), p.GetBehind(), p.GetRefusing())
	}
	if h := s.GetHistory(); h != nil {
		text := bytesText(int64(h.GetBytes()))
		if h.GetOldest() != nil {
			text = "since " + h.GetOldest().AsTime().UTC().Format(time.RFC3339) + ", " + text
		}
		say(out, "history    %s, %d changes not on the disk yet\n", text, h.GetPending())
	}
}

// statusList shows some of a list, each cut to one line, and how many more there are.
func statusList(out *strings.Builder, label, command string, total int, all []string) {
	shown := all[:min(len(all), statusLists)]
	for i, text := range shown {
		if i > 0 {
			label = ""
		}
		lines := table.Wrap(printable.Text(text), statusWidth-len("           ")-len(" …"))
		if len(lines) > 1 {
			lines[0] += " …"
		}
		say(out, "%-11s%s\n", label, lines[0])
	}
	if more := total - len(shown); more > 0 && len(shown) > 0 {
		say(out, "           and %d more: %s\n", more, command)
	}
}
