package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/export"
	"hdsd/internal/table"
)

// exportFormats are the formats of export, by the ends of file names.
var exportFormats = map[string]string{".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}

func newExport() *cobra.Command {
	e := &exporting{}
	command := &cobra.Command{
		Use:   "export FILE",
		Short: "Write the history into a file: CSV, JSON lines or Parquet",
		Long: `export writes the recorded changes of health, oldest first, or with --events
what happened beside. The end of FILE says how: .csv, .jsonl or .parquet. '-'
writes to standard output, as --format says. FILE gets its name when it is
complete; only then does it replace an older one. It needs little memory,
however long the history is.`,
		Example: "  hdsd export march.parquet --since 2026-03-01 --until 2026-04-01\n  hdsd export events.csv --events\n  hdsd export - --format jsonl --cluster web | jq .reason",
		Args:    oneFile,
		RunE:    e.run,
	}
	command.Flags().StringVar(&e.cluster, "cluster", "", "only the cluster with this `name`")
	command.Flags().BoolVar(&e.events, "events", false, "what happened beside changes of health")
	command.Flags().StringVar(&e.format, "format", "", "csv, jsonl or parquet (default: by the end of FILE)")
	command.Flags().StringVar(&e.since, "since", "", "from this `time` on ("+timeForms+"; default: all of the history)")
	command.Flags().StringVar(&e.until, "until", "", "before this `time` (as --since; default: now)")
	e.client.addOperatorFlags(command)
	e.client.filter.addTo(command)
	e.client.filter.addChecker(command, "changes with a vote, and events,")
	completeWords(command, "format", "csv", "jsonl", "parquet")
	completeWords(command, "cluster")
	completeWords(command, "since")
	completeWords(command, "until")
	return command
}

// exporting is an export with its flags.
type exporting struct {
	client                        client
	cluster, format, since, until string
	events                        bool
}

func (e *exporting) run(command *cobra.Command, args []string) error {
	path := args[0]
	if e.format = cmp.Or(strings.ToLower(e.format), exportFormats[strings.ToLower(filepath.Ext(path))]); e.format == "" {
		return usageError{fmt.Errorf("%s: say --format csv, jsonl or parquet, or end the name in .csv, .jsonl or .parquet", path)}
	}
	if e.format != "csv" && e.format != "jsonl" && e.format != "parquet" {
		return usageError{fmt.Errorf("--format %q: want csv, jsonl or parquet", e.format)}
	}
	f := &e.client.filter
	if f.unhealthy && e.events {
		f.noUnhealthy = "events have no health"
	}
	if err := f.check(); err != nil {
		return err
	}
	request := &hdsdv1.ListTransitionsRequest{Cluster: e.cluster, Checker: f.checker, Unhealthy: f.unhealthy, Locality: f.locality}
	var err error
	if request.StartTime, request.EndTime, err = parsePeriod(e.since, e.until, now()); err != nil {
		return err
	}
	if request.EndTime == nil {
		request.EndTime, _ = parseTime("until", "0s", now()) // or it might never end
	}
	if path == "-" {
		if e.format == "parquet" && table.IsTerminal(command.OutOrStdout()) {
			return usageError{errors.New("a Parquet file is nothing for a terminal: name a file, or send it to another program")}
		}
		return e.write(command, request, command.OutOrStdout())
	}
	if path, err = target(path); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".unfinished-*")
	if bad, ok := errors.AsType[*fs.PathError](err); ok { // of a temporary name
		return fmt.Errorf("%s cannot be written: %w", path, bad.Err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // if it still has this name
	err = e.write(command, request, file)
	if err == nil {
		err = file.Sync()
	}
	if err = cmp.Or(err, file.Close()); err != nil {
		return err
	}
	if err := os.Chmod(file.Name(), 0o644); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	say(command.OutOrStdout(), "%d rows in %s\n", e.client.shown.Load(), path)
	return nil
}

// write writes all rows. The output is valid only without an error.
func (e *exporting) write(command *cobra.Command, request *hdsdv1.ListTransitionsRequest, w io.Writer) error {
	buffered := bufio.NewWriterSize(w, 1<<20)
	err := e.client.ask(command, func(ctx context.Context, query hdsdv1.QueryClient) error {
		if e.events {
			p, err := e.printer(buffered, recordedEventHeader)
			if err != nil {
				return err
			}
			request := &hdsdv1.ListEventsRequest{
				Cluster: request.GetCluster(), Checker: request.GetChecker(), Locality: request.GetLocality(), StartTime: request.GetStartTime(), EndTime: request.GetEndTime(),
			}
			return printAll(p, 0, func(token string, size int32) ([]*hdsdv1.Event, string, error) {
				request.PageToken, request.PageSize = token, size
				answer, err := query.ListEvents(ctx, request)
				return answer.GetEvents(), answer.GetNextPageToken(), err
			}, recordedEventCells)
		}
		p, err := e.printer(buffered, historyHeader)
		if err != nil {
			return err
		}
		return printAll(p, 0, func(token string, size int32) ([]*hdsdv1.Transition, string, error) {
			request.PageToken, request.PageSize = token, size
			answer, err := query.ListTransitions(ctx, request)
			return answer.GetTransitions(), answer.GetNextPageToken(), err
		}, transitionCells)
	})
	return cmp.Or(err, buffered.Flush())
}

// printer returns the printer of the format. It counts rows.
func (e *exporting) printer(w io.Writer, header []string) (p printer, err error) {
	switch {
	case e.format == "parquet" && e.events:
		p = parquetPrinter[*hdsdv1.Event]{export.NewEvents(w)}
	case e.format == "parquet":
		p = parquetPrinter[*hdsdv1.Transition]{export.NewTransitions(w)}
	case e.format == "jsonl":
		p, err = newPrinter("json", table.Screen{}, w, header, nil)
	default:
		p, err = newPrinter(e.format, table.Screen{}, w, header, nil)
	}
	return counting{p, &e.client.shown}, err
}

// parquetPrinter writes messages of one type as Parquet.
type parquetPrinter[Message proto.Message] struct {
	writer interface {
		Write(Message) error
		Close() error
	}
}

func (p parquetPrinter[Message]) row(message proto.Message, _ []string) error {
	m, ok := message.(Message)
	if !ok {
		return fmt.Errorf("a row is a %T", message)
	}
	return p.writer.Write(m)
}

func (p parquetPrinter[Message]) flush() error { return nil }
func (p parquetPrinter[Message]) close() error { return p.writer.Close() }
