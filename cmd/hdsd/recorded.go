package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

var recordedEventHeader = []string{"time", "kind", "cluster", "address", "locality", "checker", "author", "text", "cluster_version"}

// shortEventHeader are the columns of a table, which fit on a line.
var shortEventHeader = []string{"time", "kind", "text"}

// Values of --kind beside kinds of events.
const (
	kindHealth = "HEALTH" // changes of health
	kindAll    = "ALL"    // these and all events
)

// kindWords are the words that shells offer for --kind.
func kindWords() []string {
	words := []string{"all", "health", "checker", "path", "override", "cluster", "endpoints", "coordinator", "quarantine"}
	for number := range int32(len(hdsdv1.Event_Kind_name)) {
		if number > 0 {
			words = append(words, strings.ToLower(hdsdv1.Event_Kind(number).String()))
		}
	}
	return words
}

// showEvents shows events, and with kind ALL changes of health among them.
func (c *client) showEvents(command *cobra.Command, request *hdsdv1.ListTransitionsRequest, kind string) error {
	if c.filter.unhealthy && kind != kindAll {
		c.filter.noUnhealthy = "events have no health: leave it out, or see those of --kind health"
	}
	header, short := recordedEventHeader, func(cells []string) []string { return cells }
	if c.output == "table" {
		header, short = shortEventHeader, shortEventCells
	}
	if c.empty.rows = "events"; kind == kindAll {
		c.empty.rows = "events and changes"
	}
	p, err := c.printer(command, header)
	if err != nil {
		return err
	}
	events := &hdsdv1.ListEventsRequest{
		Cluster: request.GetCluster(), Address: request.GetAddress(), Checker: request.GetChecker(), Kind: kind, Locality: request.GetLocality(),
		StartTime: request.GetStartTime(), EndTime: request.GetEndTime(), NewestFirst: request.GetNewestFirst(),
	}
	return c.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
		happened := &pageReader{list: func(token string) (rows []dated, next string, err error) {
			events.PageToken, events.PageSize = token, c.pageSize()
			answer, err := query.ListEvents(ctx, events)
			for _, e := range answer.GetEvents() {
				rows = append(rows, dated{e.GetTime(), e, short(recordedEventCells(e))})
			}
			return rows, answer.GetNextPageToken(), err
		}}
		if kind != kindAll {
			return c.printMerged(p, request.GetNewestFirst(), happened)
		}
		events.Kind = ""
		return c.printMerged(p, request.GetNewestFirst(), happened, &pageReader{list: func(token string) (rows []dated, next string, err error) {
			request.PageToken, request.PageSize = token, c.pageSize()
			answer, err := query.ListTransitions(ctx, request)
			for _, t := range withGaps(answer, request.GetNewestFirst()) {
				rows = append(rows, dated{t.GetTime(), t, short(changeCells(t))})
			}
			return rows, answer.GetNextPageToken(), err
		}})
	})
}

func recordedEventCells(e *hdsdv1.Event) []string {
	return []string{
		timeCell(e.GetTime()), e.GetKind().String(), e.GetCluster(), e.GetAddress(), localityCell(e.GetLocality()), e.GetChecker(), e.GetAuthor(), e.GetText(), versionCell(e.GetCluster()),
	}
}

// shortEventCells are those of shortEventHeader: TEXT has everything but the reason of a change
// of health.
func shortEventCells(cells []string) []string {
	last := len(cells) - 1
	author, text, version := cells[last-2], cells[last-1], cells[last]
	names := slices.Clone(cells[2 : last-2])
	names[0] = health.TitleOf(names[0], version)
	if address, locality := names[1], &names[2]; address != "" {
		*locality = "" // the address says enough
	}
	subject := strings.Join(slices.DeleteFunc(names, func(cell string) bool { return cell == "" }), " ")
	if cells[1] == kindHealth {
		text, _, _ = strings.Cut(text, ": ")
	}
	if subject != "" {
		text = subject + ": " + text
	}
	if author != "" {
		text += ", by " + author
	}
	return []string{cells[0], cells[1], text}
}

// changeCells are those of a change of health, or a gap, among events.
func changeCells(t *hdsdv1.Transition) []string {
	text := t.GetReason()
	if t.GetCluster() != "" {
		text = t.GetFrom().String() + " to " + t.GetTo().String() + ": " + text
	}
	return []string{timeCell(t.GetTime()), kindHealth, t.GetCluster(), t.GetAddress(), localityCell(t.GetLocality()), "", "", text, versionCell(t.GetCluster())}
}

// pageSize is the number of rows to request at once.
func (c *client) pageSize() int32 {
	if c.limit > 0 && c.limit < pageSize {
		return int32(c.limit)
	}
	return pageSize
}

// dated is a row with its time.
type dated struct {
	time    *timestamppb.Timestamp
	message proto.Message
	cells   []string
}

// pageReader yields the rows of a list, which it requests when they are needed.
type pageReader struct {
	list      func(token string) (rows []dated, next string, err error)
	rows      []dated
	token     string
	requested bool
}

// first returns the next row, or nil at the end.
func (p *pageReader) first() (*dated, error) {
	for len(p.rows) == 0 {
		if p.requested && p.token == "" {
			return nil, nil
		}
		var err error
		if p.rows, p.token, err = p.list(p.token); err != nil {
			return nil, err
		}
		p.requested = true
	}
	return &p.rows[0], nil
}

// printMerged shows several lists in the order of time, up to their ends or up to the limit.
func (c *client) printMerged(p printer, newestFirst bool, lists ...*pageReader) error {
	for shown := 0; c.limit == 0 || shown < c.limit; shown++ {
		var source *pageReader
		for _, list := range lists {
			row, err := list.first()
			if err != nil {
				if shown == 0 {
					return err
				}
				return cmp.Or(p.close(), err) // show the rows so far
			}
			if row != nil && (source == nil || row.time.AsTime().Before(source.rows[0].time.AsTime()) != newestFirst && !row.time.AsTime().Equal(source.rows[0].time.AsTime())) {
				source = list
			}
		}
		if source == nil {
			break
		}
		if err := p.row(source.rows[0].message, source.rows[0].cells); err != nil {
			return err
		}
		source.rows = source.rows[1:]
	}
	return p.close()
}
