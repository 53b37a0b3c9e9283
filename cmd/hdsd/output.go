package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// printer shows the rows of an answer one after the other. It may hold them
// back until flush or close.
type printer interface {
	row(message proto.Message, cells []string) error
	flush() error
	close() error
}

// counting counts the rows that go through a printer.
type counting struct {
	printer
	rows *atomic.Int64
}

func (c counting) row(message proto.Message, cells []string) error {
	c.rows.Add(1)
	return c.printer.row(message, cells)
}

// newPrinter gives the printer of a format: table, json or csv.
func newPrinter(format, colour string, to io.Writer, header []string) (printer, error) {
	on, err := screenOf(to, colour)
	if err != nil {
		return nil, err
	}
	switch format {
	case "table":
		return newTable(to, on, header), nil
	case "json":
		return jsonPrinter{to}, nil
	case "csv":
		c := csvPrinter{csv.NewWriter(to)}
		return c, c.to.Write(header)
	}
	return nil, usageError{fmt.Errorf("--output %q: want table, json or csv", format)}
}

type csvPrinter struct{ to *csv.Writer }

// row keeps to one line, which is what scripts expect.
func (c csvPrinter) row(_ proto.Message, cells []string) error {
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(cell, "\n", "; ")
	}
	return c.to.Write(cells)
}

func (c csvPrinter) flush() error {
	c.to.Flush()
	return c.to.Error()
}

func (c csvPrinter) close() error { return c.flush() }

type jsonPrinter struct{ to io.Writer }

func (j jsonPrinter) row(message proto.Message, _ []string) error {
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(message)
	if err != nil {
		return err
	}
	// protojson varies its white space on purpose; scripts want it stable.
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err = j.to.Write(line.Bytes())
	return err
}

func (j jsonPrinter) flush() error { return nil }

func (j jsonPrinter) close() error { return nil }

func timeCell(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// localityCell writes region/zone/sub-zone without empty ends.
func localityCell(l *corev3.Locality) string {
	return strings.Trim(l.GetRegion()+"/"+l.GetZone()+"/"+l.GetSubZone(), "/")
}

// observationsCell writes the votes as "checker-1=UNHEALTHY(503)".
func observationsCell(observations []*hdsdv1.Observation) string {
	var votes []string
	for _, o := range observations {
		vote := o.GetChecker() + "=" + o.GetStatus().String()
		if o.HttpStatusCode != nil {
			vote += fmt.Sprintf("(%d)", o.GetHttpStatusCode())
		}
		if o.GetDisbelieved() != "" {
			vote += "?"
		}
		votes = append(votes, vote)
	}
	return strings.Join(votes, " ")
}

// parseTime reads RFC 3339, or a duration as so long before now.
func parseTime(flag, text string, now time.Time) (*timestamppb.Timestamp, error) {
	if text == "" {
		return nil, nil
	}
	if ago, ok := parseAgo(text); ok {
		return timestamppb.New(now.Add(-ago)), nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil, usageError{fmt.Errorf("--%s %q: want a time (2026-01-02T15:04:05Z) or a duration ago (90s, 1h30m, 7d)", flag, text)}
	}
	return timestamppb.New(at), nil
}

// parsePeriod reads --since and --until, of which the second is not to come
// first.
func parsePeriod(since, until string, now time.Time) (start, end *timestamppb.Timestamp, err error) {
	if start, err = parseTime("since", since, now); err != nil {
		return nil, nil, err
	}
	if end, err = parseTime("until", until, now); err != nil {
		return nil, nil, err
	}
	if start != nil && end != nil && start.AsTime().After(end.AsTime()) {
		return nil, nil, usageError{fmt.Errorf("--since %s is after --until %s: exchange the two", since, until)}
	}
	return start, end, nil
}

// parseAgo reads a duration; days, too, as there are many of them in a history.
func parseAgo(text string) (time.Duration, bool) {
	if number, ok := strings.CutSuffix(text, "d"); ok {
		days, err := strconv.ParseUint(number, 10, 16)
		return time.Duration(days) * 24 * time.Hour, err == nil
	}
	ago, err := time.ParseDuration(text)
	return ago, err == nil && ago >= 0
}
