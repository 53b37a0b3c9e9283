package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
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

// ending is a printer that ends with how many rows there are, and with its pager.
type ending struct {
	printer
	client *client
	to     io.Writer
	pages  *pager
}

func (e ending) row(message proto.Message, cells []string) error {
	return e.leave(e.printer.row(message, cells))
}

func (e ending) flush() error { return e.leave(e.printer.flush()) }

func (e ending) close() error {
	err := e.printer.close()
	if of := e.client.total; err == nil && of != nil {
		if total := of(); total >= 0 {
			say(e.to, "%s of %s\n", grouped(int(e.client.shown.Load())), grouped(total))
		}
	}
	if e.pages == nil || errors.Is(err, errQuit) {
		return e.leave(err)
	}
	return cmp.Or(err, e.pages.Close())
}

// leave ends the pager whose reader has left.
func (e ending) leave(err error) error {
	if errors.Is(err, errQuit) && e.pages != nil {
		_ = e.pages.Close() // as the reader wants it
	}
	return err
}

// grouped formats a number with commas.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// newPrinter returns the printer of a format: table, wide, json or csv.
func newPrinter(format string, on table.Screen, to io.Writer, header, narrow []string) (printer, error) {
	switch format {
	case "table":
		if len(narrow) > 0 {
			return newNarrow(to, on, header, narrow), nil
		}
		return tablePrinter{table: newTable(to, on, header)}, nil
	case "wide":
		return tablePrinter{table: newTable(to, on, header)}, nil
	case "json":
		return jsonPrinter{to}, nil
	case "csv":
		c := csvPrinter{csv.NewWriter(to)}
		return c, c.to.Write(header)
	}
	return nil, usageError{fmt.Errorf("--output %q: want table, wide, json or csv", format)}
}

type tablePrinter struct {
	table *table.Table
	of    []int // the cells that are shown; nil: all
}

// newTable makes a table of all columns.
func newTable(to io.Writer, on table.Screen, header []string) *table.Table {
	t := table.New(to, on, header, looks)
	t.Now, t.Whole = now, true
	return t
}

// newNarrow makes a table of some columns, and of fewer where the screen is narrow.
func newNarrow(to io.Writer, on table.Screen, header, narrow []string) printer {
	p := tablePrinter{table: table.New(to, on, narrow, looks)}
	p.table.Now = now
	for _, name := range narrow {
		p.of = append(p.of, slices.Index(header, name))
	}
	return p
}

func (t tablePrinter) row(_ proto.Message, cells []string) error {
	if t.of == nil {
		return t.table.Row(cells)
	}
	shown := make([]string, len(t.of))
	for i, at := range t.of {
		shown[i] = cells[at]
	}
	return t.table.Row(shown)
}

func (t tablePrinter) flush() error { return t.table.Flush() }
func (t tablePrinter) close() error { return t.table.Close() }

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

// votesCell counts the votes that count and agree with the health, of all.
func votesCell(is corev3.HealthStatus, observations []*hdsdv1.Observation) string {
	agree := 0
	for _, o := range observations {
		if o.GetDisbelieved() == "" && sameSide(o.GetStatus(), is) {
			agree++
		}
	}
	return fmt.Sprintf("%d/%d", agree, len(observations))
}

// sameSide reports whether two healths are both up, both down, or the same.
func sameSide(a, b corev3.HealthStatus) bool {
	return a == b || isUp(a) && isUp(b) || isDown(a) && isDown(b)
}

func isDown(h corev3.HealthStatus) bool {
	return h == corev3.HealthStatus_UNHEALTHY || h == corev3.HealthStatus_TIMEOUT
}
