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

// replay is what hdsd replay is asked for.
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

// replayRows prints what a replay shows.
type replayRows struct {
	table *table.Table  // nil: as JSON
	json  *bytes.Buffer // of a line
	to    io.Writer
}

func (r *replay) rows(to io.Writer) (*replayRows, error) {
	switch r.output {
	case "json":
		return &replayRows{json: &bytes.Buffer{}, to: to}, nil
	case "table":
		screen, err := table.ScreenOf(to, r.color)
		if err != nil {
			return nil, usageError{err}
		}
		return &replayRows{table: newTable(to, screen, []string{"time", "kind", "subject", "decision"})}, nil
	}
	return nil, usageError{fmt.Errorf("--output %q: want table or json", r.output)}
}

// replayed is a line as JSON.
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
	at := timeCell(timestamppb.New(line.Time))
	if r.table != nil {
		subject := strings.Join(slices.DeleteFunc([]string{line.Endpoint.Cluster, line.Endpoint.Address, line.Checker}, func(s string) bool { return s == "" }), " ")
		decision := line.What
		if line.Reason != "" {
			decision += ": " + line.Reason
		}
		return r.table.Row([]string{at, line.Kind, subject, decision})
	}
	shown := replayed{Time: at, Kind: line.Kind, Cluster: line.Endpoint.Cluster, Address: line.Endpoint.Address, Checker: line.Checker, What: line.What, Reason: line.Reason}
	if l := line.Endpoint.Locality; l != (health.Locality{}) {
		shown.Locality = &replayedLocality{l.Region, l.Zone, l.SubZone}
	}
	r.json.Reset()
	encoder := json.NewEncoder(r.json)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(shown); err != nil {
		return err
	}
	_, err := r.to.Write(printable.JSON(r.json.Bytes()))
	return err
}

func (r *replayRows) close() error {
	if r.table != nil {
		return r.table.Close()
	}
	return nil
}

// run replays a file. What is shown goes to out, and how the replay ended to status.
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
	from, err := recording.NewReader(file, time.Now())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var failure error
	result, err := recording.Replay(from, func(e *recording.Entry, effect machine.Effect) {
		if at := timestamppb.New(e.Time).AsTime(); failure != nil || start != nil && at.Before(start.AsTime()) || end != nil && !at.Before(end.AsTime()) {
			return
		}
		for _, line := range recording.Lines(e.Time, effect) {
			if r.cluster == "" || line.Endpoint.Cluster != "" && source.Match(r.cluster, line.Endpoint.Cluster) {
				failure = rows.row(&line)
			}
		}
	})
	if failure = cmp.Or(failure, rows.close()); failure != nil {
		return failure
	}
	if r.output == "table" {
		status = out
	}
	return conclude(path, from, &result, err, status)
}

// conclude says how a replay ended.
func conclude(path string, from *recording.Reader, result *recording.Result, err error, to io.Writer) error {
	done := plural(int(result.Events), "event")
	here := runtime.GOOS + "/" + runtime.GOARCH
	switch {
	case err != nil:
		return fmt.Errorf("%s: after %s: %w", path, done, err)
	case result.Difference != "":
		made := fmt.Sprintf("the recording is by hdsd %s on %s", from.Version, from.Platform)
		if from.Version != version || from.Platform != here {
			made += fmt.Sprintf(", and this is hdsd %s on %s", version, here)
		}
		return fmt.Errorf("%s: %s: %s", path, result.Difference, made)
	}
	lasted := time.Duration(0)
	if result.Events > 0 {
		lasted = result.Last.Sub(from.Start)
	}
	say(to, "%s over %s replayed: %s as recorded.\n", done, lasted.Round(time.Second), plural(int(result.Decisions), "decision"))
	say(to, "It ends: %s.\n", result.Reason)
	return nil
}
