package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"hdsd/coordinator/attention"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/suggest"
)

func describeClient(ctx context.Context, d *describer, args []string) error {
	id := args[0]
	var ids []string
	var found []*hdsdv1.Client
	for token := ""; ; {
		answer, err := d.ListClients(ctx, &hdsdv1.ListClientsRequest{PageSize: pageSize, PageToken: token})
		if err != nil {
			return err
		}
		for _, c := range answer.GetClients() {
			if ids = append(ids, c.GetId()); c.GetId() == id {
				found = append(found, c)
			}
		}
		if token = answer.GetNextPageToken(); token == "" {
			break
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("no client %q is connected%s ('hdsd clients' lists all)", id, suggest.DidYouMean(id, ids))
	}
	for _, c := range found {
		describeType(d, c)
	}
	d.next("hdsd clients -o wide")
	return addAll(d.sheet, "clients", found)
}

// describeType describes a client's resources of one type.
func describeType(d *describer, c *hdsdv1.Client) {
	if d.text.Len() == 0 {
		d.line("client", "%s", c.GetId())
	}
	connected := "connected"
	if !c.GetConnected() {
		connected = "NOT connected"
	}
	d.line(service(typeCell(c.GetTypeUrl()), now()), "%s, %s: %s", c.GetKind(), connected, clientState(c))
	if id := c.GetReplica(); id != "" {
		verb := "connected to"
		if c.GetKind() == "upstream" {
			verb = "the client is"
		}
		d.line("", "%s replica %s", verb, id)
	}
	if c.GetLastAck() != nil {
		d.line("", "last accepted %s", ago(c.GetLastAck()))
	}
	if reason := c.GetLastError(); reason != "" {
		d.line("", "last error: %s", reason)
	}
	if p := c.GetPoll(); p != nil {
		d.line("", "polls by %s, last %s; was given version %s, had %s", p.GetBy(), ago(p.GetTime()), cmp.Or(p.GetGiven(), "none"), cmp.Or(p.GetHeld(), "none"))
	}
	if n := c.GetUnasked(); n > 0 {
		d.line("", "took %s without asking hdsd for their assignments: it has neither health nor checks of them", plural(int(n), "checked cluster"))
	}
	if c.GetKind() == "checker" {
		d.next(attention.Checker(c.GetId()))
	}
}

// clientState describes how far a client has its requested resources.
func clientState(c *hdsdv1.Client) string {
	parts := []string{fmt.Sprintf("has %d of %s", c.GetSynced(), plural(int(c.GetResources()), "resource"))}
	if c.GetStale() > 0 {
		parts = append(parts, fmt.Sprintf("%d not yet", c.GetStale()))
	}
	if c.GetError() > 0 {
		parts = append(parts, fmt.Sprintf("REFUSED %d", c.GetError()))
	}
	return strings.Join(parts, ", ")
}

// completeClient offers the ids of clients.
func (c *client) completeClient(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return c.complete(command, begun, func(ctx context.Context, query hdsdv1.QueryClient, offer func(value, description string)) {
		answer, _ := query.ListClients(ctx, &hdsdv1.ListClientsRequest{PageSize: pageSize})
		last := ""
		for _, k := range answer.GetClients() {
			if k.GetId() != last {
				offer(k.GetId(), k.GetKind())
			}
			last = k.GetId()
		}
	})
}

// completeIncident offers the ids of the latest incidents.
func (c *client) completeIncident(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return c.complete(command, begun, func(ctx context.Context, query hdsdv1.QueryClient, offer func(value, description string)) {
		answer, _ := query.ListIncidents(ctx, &hdsdv1.ListIncidentsRequest{PageSize: 100})
		for _, i := range answer.GetIncidents() {
			offer(i.GetId(), i.GetSummary())
		}
	})
}
