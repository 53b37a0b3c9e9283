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
	"hdsd/health"
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

// worstClusters describes the state of unhealthy clusters, the worst first.
func worstClusters(ctx context.Context, query hdsdv1.QueryClient) (names []string, err error) {
	answer, err := query.GetOverview(ctx, &hdsdv1.GetOverviewRequest{Limit: statusLists})
	for _, k := range answer.GetClusters() {
		title := health.TitleOf(k.GetCluster(), k.GetVersion())
		switch k.GetState() {
		case "OK":
		case "UNOBSERVED":
			names = append(names, title+": no endpoint has a believed vote")
		case "NONE_HEALTHY":
			names = append(names, fmt.Sprintf("%s: no endpoint is healthy, %d of %s down", title, k.GetDown(), plural(int(k.GetEndpoints()), "endpoint")))
		case "UNCHECKED":
			names = append(names, title+": no endpoint may be checked")
		default:
			names = append(names, fmt.Sprintf("%s: %d of %s down", title, k.GetDown(), plural(int(k.GetEndpoints()), "endpoint")))
		}
	}
	return names, err
}

// statusText lays out the status, with unhealthy clusters.
func statusText(s *hdsdv1.GetStatusResponse, worst []string) string {
	var b strings.Builder
	line := func(format string, args ...any) { say(&b, format+"\n", args...) }
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
	line("           %d none healthy, %d unchecked", k.GetNoneHealthy(), k.GetUnchecked())
	statusList(&b, "", "hdsd clusters --unhealthy", int(k.GetSomeDown()+k.GetHalfDown()+k.GetAllDown()+k.GetUnobserved()+k.GetNoneHealthy()+k.GetUnchecked()), worst)
	e := s.GetEndpoints()
	line("endpoints  %d healthy%s, %d unhealthy%s,", e.GetHealthy(), portion(e.GetDegraded(), "degraded"), e.GetUnhealthy(), portion(e.GetTimeout(), "timeout"))
	line("           %d draining, %d unknown; %s", e.GetDraining(), e.GetUnknown(), heldText(e.GetHeld()))
	if v := e.GetVoters(); len(v) == 4 {
		line("           believed votes: %d with none, %d with 1, %d with 2, %d with more", v[0], v[1], v[2], v[3])
	}
	h := s.GetCheckers()
	line("checkers   %d connected, %d doubted, %d silent, %d blind, %d lost in 24 h", h.GetConnected(), h.GetDoubted(), h.GetSilent(), h.GetBlind(), h.GetLost())
	wholeText(&b, s)
	items := s.GetAttention()
	if len(items) == 0 {
		line("attention  nothing needs attention")
		return b.String()
	}
	line("attention")
	room := statusLines - strings.Count(b.String(), "\n") - 1 // number of lines left
	for n, a := range items {
		text := attentionText(a)
		if room -= strings.Count(text, "\n"); room < 0 {
			line("  and %d more: hdsd status -o json", len(items)-n+int(s.GetFurther()))
			return b.String()
		}
		say(&b, "%s", text)
	}
	if further := s.GetFurther(); further > 0 {
		line("  and %d more: hdsd status -o json", further)
	}
	return b.String()
}

// attentionText describes a thing that needs attention, its start, and the next command. The
// command stays on one line, to be copied.
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

// heldText counts held endpoints.
func heldText(n uint32) string {
	if n == 0 {
		return "0 held"
	}
	return fmt.Sprintf("%d HELD, without a believed vote", n)
}

// statusLists bounds the clusters, zones and sources in the status.
const statusLists = 4

// wholeText lays out the checkers by zone, the sources, the data planes and the history.
func wholeText(b *strings.Builder, s *hdsdv1.GetStatusResponse) {
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
	statusList(b, "", "hdsd checkers", len(zones), zones)
	statusList(b, "sources", "hdsd source list", len(sources), sources)
	if p := s.GetDataPlanes(); p != nil {
		say(b, "planes     %d synced, %d behind, %d refusing\n", p.GetSynced(), p.GetBehind(), p.GetRefusing())
	}
	if h := s.GetHistory(); h != nil {
		text := bytesText(int64(h.GetBytes()))
		if h.GetOldest() != nil {
			text = "since " + h.GetOldest().AsTime().UTC().Format(time.RFC3339) + ", " + text
		}
		say(b, "history    %s, %d changes not written yet\n", text, h.GetPending())
	}
}

// statusList shows some of a list, each cut to one line, and the number of others.
func statusList(b *strings.Builder, label, command string, total int, names []string) {
	shown := names[:min(len(names), statusLists)]
	for i, text := range shown {
		if i > 0 {
			label = ""
		}
		lines := table.Wrap(printable.Text(text), statusWidth-len("           ")-len(" …"))
		if len(lines) > 1 {
			lines[0] += " …"
		}
		say(b, "%-11s%s\n", label, lines[0])
	}
	if rest := total - len(shown); rest > 0 && len(shown) > 0 {
		say(b, "           and %d more: %s\n", rest, command)
	}
}
