package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"hdsd/coordinator/attention"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/suggest"
	"hdsd/internal/table"
)

func describeChecker(ctx context.Context, d *describer, args []string) error {
	id := args[0]
	var ids []string
	var found *hdsdv1.Checker
	for token := ""; found == nil; {
		answer, err := d.ListCheckers(ctx, &hdsdv1.ListCheckersRequest{Lost: true, PageSize: pageSize, PageToken: token})
		if err != nil {
			return err
		}
		for _, k := range answer.GetCheckers() {
			if ids = append(ids, k.GetId()); k.GetId() == id {
				found = k
			}
		}
		if token = answer.GetNextPageToken(); token == "" {
			break
		}
	}
	if found == nil {
		return fmt.Errorf("no checker %q is known%s ('hdsd checkers' lists all)", id, suggest.DidYouMean(id, ids))
	}
	d.checker(found)
	if err := d.happened(ctx, id); err != nil {
		return err
	}
	return addOne(d.sheet, "checker", found)
}

func (d *describer) checker(k *hdsdv1.Checker) {
	quoted := attention.Quoted(k.GetId())
	connected := "connected"
	if !k.GetConnected() {
		connected = "NOT connected"
	}
	d.line("checker", "%s, %s", k.GetId(), connected)
	if k.GetLostSince() != nil {
		d.line("LOST", "%s: %s", ago(k.GetLostSince()), k.GetLostReason())
	}
	if id := k.GetReplica(); id != "" {
		d.line("replica", "%s", id)
		d.next("hdsd replicas")
	}
	d.line("locality", "%s", cmp.Or(localityCell(k.GetLocality()), "none given: redundancy over zones needs one"))
	d.line("version", "%s", cmp.Or(k.GetVersion(), "not known"))
	if k.GetTrusted() {
		d.line("believed", "yes")
	} else {
		d.line("believed", "NO: %s", k.GetDistrustReason())
	}
	if o := k.GetOperator(); o != nil {
		d.line("trust", "%s", trustLine(o))
		d.next("hdsd checkers judge " + quoted)
	}
	if reason := k.GetBlindReason(); reason != "" {
		d.line("blind", "%s", reason)
	}
	if k.GetProbation() {
		d.line("probation", "since %s: %s", ago(k.GetProbationSince()), k.GetProbationReason())
	}
	var cuts []string
	for _, c := range k.GetCutPaths() {
		cuts = append(cuts, fmt.Sprintf("down votes about %s do not count: %s", c.GetTo(), c.GetReason()))
	}
	d.lines("cut paths", "", cuts)
	d.line("abilities", "%s", cmp.Or(strings.Join(k.GetAbilities(), ", "), "nothing that it announced"))
	d.line("endpoints", "%d; its share by weight (%g) is %d", k.GetAssignedEndpoints(), k.GetWeight(), k.GetShare())
	d.line("checks", "%s a second", rateCell(k))
	d.line("specifier", "%s", specifierText(k))
	if k.GetLastReport() == nil {
		d.line("last report", "none known")
	} else {
		d.line("last report", "%s", ago(k.GetLastReport()))
	}
	if n := k.GetStrangeReports(); n > 0 {
		d.line("strange", "%d reported endpoints that it was never assigned", n)
	}
	if k.GetConnected() && !k.GetTrusted() && k.GetOperator() == nil {
		d.next("hdsd checkers distrust --reason 'its peers contradict it' " + quoted)
	}
	d.next("hdsd checkers -o wide")
}

// happened shows the latest events of a checker.
func (d *describer) happened(ctx context.Context, checker string) error {
	answer, err := d.ListEvents(ctx, &hdsdv1.ListEventsRequest{Checker: checker, NewestFirst: true, PageSize: latestOf})
	if err != nil {
		return err
	}
	var lines []string
	for _, e := range answer.GetEvents() {
		lines = append(lines, fmt.Sprintf("%s %s: %s", table.Clock(timeCell(e.GetTime()), now()), e.GetKind(), e.GetText()))
	}
	d.lines("changes", "none recorded", lines)
	d.next("hdsd history --kind all --since 1h --checker " + attention.Quoted(checker))
	return addAll(d.sheet, "events", answer.GetEvents())
}

// specifierText describes how far a checker has its specifier.
func specifierText(k *hdsdv1.Checker) string {
	if !k.GetConnected() {
		return "none: it is not connected; it gets one when it connects again"
	}
	switch state := k.GetSpecifier(); state {
	default:
		return cmp.Or(state, "none")
	case "SYNCED":
		return "SYNCED: it has all of it, and reports on it"
	case "SENT":
		return "SENT: its reports do not match it yet"
	case "NOT_SENT":
		return "NOT_SENT: a part is held back, such as a changed cluster that another checker tries first"
	}
}
