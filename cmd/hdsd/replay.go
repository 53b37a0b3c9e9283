package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"hdsd/health"
	"hdsd/internal/printable"
	"hdsd/internal/table"
	"hdsd/machine"
	"hdsd/machine/recording"
	"hdsd/source"
)

// replay holds the flags of hdsd replay.
type replay struct {
	output, color, cluster, since, until string
}

func newReplay() *cobra.Command {
	var r replay
	command := &cobra.Command{
		Use:   "replay FILE",
		Short: "Replay a recording: what hdsd decided, when and why",
		Long: `replay has hdsd handle the events of a recording again, and shows what it
decides. serve writes recordings if the configuration has recording.file. They
hold no secrets, so that one can be attached to a report of a fault.

It fails if this hdsd decides anything else than the one that wrote the file.`,
		Example: "  hdsd replay events.hdsd\n  hdsd replay events.hdsd --cluster 'pay-*' --since 18:01 -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("replay takes one argument: the FILE of a recording")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			return r.run(args[0], command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	command.Flags().StringVarP(&r.output, "output", "o", "table", "table or json (an object a line)")
	command.Flags().StringVar(&r.color, "color", "auto", "`when` tables have colour: auto (on a terminal, unless NO_COLOR is set), always or never")
	command.Flags().StringVar(&r.cluster, "cluster", "", "only what concerns clusters that match this `glob`: * is any run of characters, ? any one")
	command.Flags().StringVar(&r.since, "since", "", "only from this `time` on ("+timeForms+")")
	command.Flags().StringVar(&r.until, "until", "", "only before this `time` (as --since)")
	completeWords(command, "output", "table", "json")
	completeWords(command, "color", "auto", "always", "never")
	for _, flag := range []string{"cluster", "since", "until"} {
		completeWords(command, flag)
	}
	return command
}

// replayRows prints the lines of a replay.
type replayRows struct {
	table *table.Table  // nil: the output is JSON
	json  *bytes.Buffer // one object
	out   io.Writer
}

// rows returns the printer of the format.
func (r *replay) rows(out io.Writer) (*replayRows, error) {
	switch r.output {
	case "json":
		return &replayRows{json: &bytes.Buffer{}, out: out}, nil
	case "table":
		screen, err := table.ScreenOf(out, r.color)
		if err != nil {
			return nil, usageError{err}
		}
		return &replayRows{table: newTable(out, screen, []string{"time", "kind", "subject", "decision"})}, nil
	}
	return nil, usageError{fmt.Errorf("--output %q: want table or json", r.output)}
}

// replayed is the JSON form of a line.
type replayed struct {
	Time     string            `json:"time"`
	Kind     string            `json:"kind"`
	Cluster  string            `json:"cluster,omitempty"`
	Address  string            `json:"address,omitempty"`
	Locality *replayedLocality `json:"locality,omitempty"`
	Checker  string            `json:"checker,omitempty"`
	What     string            `json:"what"`
	Reason   string            `json:"reason,omitempty"`
}

type replayedLocality struct {
	Region  string `json:"region"`
	Zone    string `json:"zone"`
	SubZone string `json:"subZone"`
}

func (r *replayRows) row(line *recording.Line) error {
	cell := timeCell(timestamppb.New(line.Time))
	if r.table != nil {
		subject := strings.Join(slices.DeleteFunc([]string{line.Endpoint.Cluster, line.Endpoint.Address, line.Checker}, func(s string) bool { return s == "" }), " ")
		decision := line.Text
		if line.Reason != "" {
			decision += ": " + line.Reason
		}
		return r.table.Row([]string{cell, line.Kind, subject, decision})
	}
	shown := replayed{Time: cell, Kind: line.Kind, Cluster: line.Endpoint.Cluster, Address: line.Endpoint.Address, Checker: line.Checker, What: line.Text, Reason: line.Reason}
	if l := line.Endpoint.Locality; l != (health.Locality{}) {
		shown.Locality = &replayedLocality{l.Region, l.Zone, l.SubZone}
	}
	r.json.Reset()
	encoder := json.NewEncoder(r.json)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(shown); err != nil {
		return err
	}
	_, err := r.out.Write(printable.JSON(r.json.Bytes()))
	return err
}

func (r *replayRows) close() error {
	if r.table != nil {
		return r.table.Close()
	}
	return nil
}

// run replays a file. It prints rows to out. For JSON, the summary goes to status.
func (r *replay) run(path string, out, status io.Writer) error {
	start, end, err := parsePeriod(r.since, r.until, now())
	if err != nil {
		return err
	}
	rows, err := r.rows(out)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	reader, err := recording.NewReader(file, time.Now())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var failure error
	result, err := recording.Replay(reader, func(e *recording.Entry, effect machine.Effect) error {
		if t := e.Time; start != nil && t.Before(start.AsTime()) || end != nil && !t.Before(end.AsTime()) {
			return nil
		}
		for _, line := range recording.Lines(e.Time, effect) {
			if r.cluster == "" || line.Endpoint.Cluster != "" && source.Match(r.cluster, line.Endpoint.Cluster) {
				if failure = rows.row(&line); failure != nil {
					return failure
				}
			}
		}
		return nil
	})
	if failure = cmp.Or(failure, rows.close()); failure != nil {
		return failure
	}
	if r.output == "table" {
		status = out
	}
	return conclude(path, reader, &result, err, status)
}

// conclude prints the summary of a replay, or returns its error.
func conclude(path string, reader *recording.Reader, result *recording.Result, err error, out io.Writer) error {
	done := plural(int(result.Events), "event")
	platform := runtime.GOOS + "/" + runtime.GOARCH
	switch {
	case err != nil:
		return fmt.Errorf("%s: after %s: %w", path, done, err)
	case result.Difference != "":
		origin := fmt.Sprintf("the recording is by hdsd %s on %s", reader.Version, reader.Platform)
		if reader.Version != version || reader.Platform != platform {
			origin += fmt.Sprintf(", and this is hdsd %s on %s", version, platform)
		}
		return fmt.Errorf("%s: %s: %s", path, result.Difference, origin)
	}
	duration := time.Duration(0)
	if result.Events > 0 {
		duration = result.Last.Sub(reader.Start)
	}
	say(out, "%s over %s replayed: %s as recorded.\n", done, duration.Round(time.Second), plural(int(result.Decisions), "decision"))
	say(out, "It ends: %s.\n", result.Reason)
	return nil
}
