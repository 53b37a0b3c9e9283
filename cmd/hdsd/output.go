package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/printable"
	"hdsd/internal/table"
)

// printer shows rows one after the other. It may buffer them until flush or close.
type printer interface {
	row(message proto.Message, cells []string) error
	flush() error
	close() error
}

// counting is a printer that counts rows.
type counting struct {
	printer
	rows *atomic.Int64
}

func (c counting) row(message proto.Message, cells []string) error {
	c.rows.Add(1)
	return c.printer.row(message, cells)
}

// newPrinter returns the printer of a format: table, json or csv.
func newPrinter(format, colour string, to io.Writer, header []string) (printer, error) {
	on, err := table.ScreenOf(to, colour)
	if err != nil {
		return nil, usageError{err}
	}
	switch format {
	case "table":
		return tablePrinter{newTable(to, on, header)}, nil
	case "json":
		return jsonPrinter{to}, nil
	case "csv":
		c := csvPrinter{csv.NewWriter(to)}
		return c, c.to.Write(header)
	}
	return nil, usageError{fmt.Errorf("--output %q: want table, json or csv", format)}
}

type tablePrinter struct{ table *table.Table }

func newTable(to io.Writer, on table.Screen, header []string) *table.Table {
	t := table.New(to, on, header, looks)
	t.Now = now
	return t
}

func (t tablePrinter) row(_ proto.Message, cells []string) error { return t.table.Row(cells) }
func (t tablePrinter) flush() error                              { return t.table.Flush() }
func (t tablePrinter) close() error                              { return t.table.Close() }

type csvPrinter struct{ to *csv.Writer }

// row writes one line, as scripts expect.
func (c csvPrinter) row(_ proto.Message, cells []string) error {
	for i, cell := range cells {
		cells[i] = printable.Cell(strings.NewReplacer(table.LineBreak, "; ", "\n", "; ").Replace(cell))
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
	line, err := compact(message)
	if err != nil {
		return err
	}
	_, err = j.to.Write(printable.JSON(append(line, '\n')))
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

// localityCell formats a locality as region/zone/sub-zone without empty ends.
func localityCell(l *corev3.Locality) string {
	return strings.Trim(l.GetRegion()+"/"+l.GetZone()+"/"+l.GetSubZone(), "/")
}

// observationsCell formats votes as "checker-1=UNHEALTHY(503)".
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
