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
	"hdsd/health"
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

// ending is a printer that ends with the number of rows, and with its pager.
type ending struct {
	printer
	client *client
	w      io.Writer
	pages  *pager
}

func (e ending) row(message proto.Message, cells []string) error {
	return e.leave(e.printer.row(message, cells))
}

func (e ending) flush() error { return e.leave(e.printer.flush()) }

func (e ending) close() error {
	err := e.printer.close()
	if total := e.client.total; err == nil && total != nil {
		if total := total(); total >= 0 {
			say(e.w, "%s of %s\n", grouped(int(e.client.shown.Load())), grouped(total))
		}
	}
	if e.pages == nil || errors.Is(err, errQuit) {
		return e.leave(err)
	}
	return cmp.Or(err, e.pages.Close())
}

// leave ends a pager that its reader has left.
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
func newPrinter(format string, screen table.Screen, w io.Writer, header, narrow []string) (printer, error) {
	switch format {
	case "table":
		if len(narrow) > 0 {
			return newNarrow(w, screen, header, narrow), nil
		}
		p := tablePrinter{table: newTable(w, screen, header)}
		p.find(header)
		return p, nil
	case "wide":
		p := tablePrinter{table: newTable(w, screen, header)}
		p.find(header)
		return p, nil
	case "json":
		return jsonPrinter{w}, nil
	case "csv":
		c := csvPrinter{csv.NewWriter(w)}
		return c, c.w.Write(header)
	}
	return nil, usageError{fmt.Errorf("--output %q: want table, wide, json or csv", format)}
}

type tablePrinter struct {
	table   *table.Table
	columns []int // the shown cells; nil: all

	cluster, version int // the cells with a cluster and its version; below 0: none
}

// newTable makes a table of all columns.
func newTable(w io.Writer, screen table.Screen, header []string) *table.Table {
	t := table.New(w, screen, header, looks)
	t.Now, t.Whole = now, true
	return t
}

// find finds the cells with a cluster and its version.
func (t *tablePrinter) find(header []string) {
	t.version = slices.Index(header, "cluster_version")
	if t.cluster = slices.Index(header, "cluster"); t.cluster < 0 {
		t.cluster = slices.Index(header, "name")
	}
}

// newNarrow makes a table of some columns, and of fewer if the screen is narrow; of all, in another
// order, if narrow names all.
func newNarrow(w io.Writer, screen table.Screen, header, narrow []string) printer {
	p := tablePrinter{table: table.New(w, screen, narrow, looks)}
	p.table.Now, p.table.Whole = now, len(narrow) == len(header)
	p.find(header)
	for _, name := range narrow {
		p.columns = append(p.columns, slices.Index(header, name))
	}
	return p
}

// row shows a cluster by the name that users know, and its version, if there is one beside the
// first.
func (t tablePrinter) row(_ proto.Message, cells []string) error {
	if t.version >= 0 && t.cluster >= 0 {
		cells[t.cluster] = health.ClusterOf(cells[t.cluster], cells[t.version])
	}
	if t.columns == nil {
		return t.table.Row(cells)
	}
	shown := make([]string, len(t.columns))
	for i, column := range t.columns {
		shown[i] = cells[column]
	}
	return t.table.Row(shown)
}

func (t tablePrinter) flush() error { return t.table.Flush() }
func (t tablePrinter) close() error { return t.table.Close() }

type csvPrinter struct{ w *csv.Writer }

// row writes one line, as scripts expect.
func (c csvPrinter) row(_ proto.Message, cells []string) error {
	for i, cell := range cells {
		cells[i] = printable.Cell(strings.NewReplacer(table.LineBreak, "; ", "\n", "; ").Replace(cell))
	}
	return c.w.Write(cells)
}

func (c csvPrinter) flush() error {
	c.w.Flush()
	return c.w.Error()
}

func (c csvPrinter) close() error { return c.flush() }

type jsonPrinter struct{ w io.Writer }

func (j jsonPrinter) row(message proto.Message, _ []string) error {
	line, err := compact(message)
	if err != nil {
		return err
	}
	_, err = j.w.Write(printable.JSON(append(line, '\n')))
	return err
}

func (j jsonPrinter) flush() error { return nil }

func (j jsonPrinter) close() error { return nil }

// versionCell returns the version of a cluster by hdsd's own name. Rows of the past do not have
// it.
func versionCell(cluster string) string {
	_, version := health.SplitVersion(cluster)
	return version
}

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

// votesCell counts the counting votes that agree with the health, of all.
func votesCell(status corev3.HealthStatus, observations []*hdsdv1.Observation) string {
	agree := 0
	for _, o := range observations {
		if o.GetDisbelieved() == "" && sameSide(o.GetStatus(), status) {
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
