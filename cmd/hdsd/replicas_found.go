package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"hdsd/replica/maintenance"
)

// foundingFlags are the flags of a founding.
type foundingFlags struct {
	config             string
	dryRun, yes, force bool
}

func newReplicasFound() *cobra.Command {
	var f foundingFlags
	command := &cobra.Command{
		Use:   "found -c FILE",
		Short: "Found the fleet of replicas again from this database, while none runs",
		Long: `found begins a fleet with the history of the database of this configuration. It
is for an etcd that is lost, and for a restored backup. Run it on the replica
with the longest history, when all replicas are stopped.

It shows what the database and etcd have. Then it removes the log from etcd,
writes a new fleet into it, and makes the history of the database that of this
fleet. After an error, repeat it. At last start this replica, and then the
others, each with an empty data_dir: they copy the database.

It refuses while etcd has a session of a replica. Without --force, it refuses as
well if etcd has what the database lacks, or all that it has.`,
		Example: "  hdsd replicas found -c hdsd.yaml --dry-run\n  hdsd restore /backup/hdsd.db -c hdsd.yaml && hdsd replicas found -c hdsd.yaml",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := needConfig(f.config); err != nil {
				return err
			}
			return f.found(command.Context(), command)
		},
	}
	addConfigFlag(command, &f.config)
	command.Flags().BoolVar(&f.dryRun, "dry-run", false, "change nothing, show what would be done")
	command.Flags().BoolVar(&f.yes, "yes", false, "do not ask before")
	command.Flags().BoolVar(&f.force, "force", false, "found the fleet although etcd has what the database lacks, or all that it has")
	return command
}

func (f *foundingFlags) found(ctx context.Context, command *cobra.Command) (err error) {
	loaded, err := load(f.config, command.ErrOrStderr())
	if err != nil {
		return err
	}
	founding, err := maintenance.Open(ctx, loaded)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, founding.Close()) }()
	out := command.OutOrStdout()
	showFounding(out, loaded.GetDataDir(), loaded.GetReplication().GetEtcd().GetPrefix(), founding)
	if err := founding.Running(); err != nil {
		return err
	}
	if doubt := founding.Doubt(); doubt != nil && !f.force {
		return fmt.Errorf("%w; --force founds it anyway", doubt)
	}
	if f.dryRun {
		sayLine(out, "nothing has changed")
		return nil
	}
	if err := f.confirm(command); err != nil {
		return err
	}
	fleet, err := founding.Found(ctx)
	if err != nil {
		return err
	}
	say(out, "fleet %s is founded, and its log goes on after entry %d\n", fleet, founding.After)
	sayLine(out, "now start this replica, and wait for its /readyz; then start the others, each with an empty data_dir")
	return nil
}

// showFounding shows what a founding begins with.
func showFounding(out io.Writer, folder, prefix string, f *maintenance.Founding) {
	place := "of no fleet"
	if f.Database.Fleet != "" {
		place = fmt.Sprintf("up to entry %d of fleet %s", f.Database.Sequence, f.Database.Fleet)
	}
	if f.Database.Diverged {
		place += ", and more that the log does not have"
	}
	say(out, "database in %s: history since %s, %s\n", folder, f.Began.UTC().Format(time.RFC3339), place)
	e := &f.Etcd
	switch {
	case e.Fleet == "" && e.Entries == 0:
		say(out, "etcd %s: empty\n", prefix)
	case e.Fleet == "":
		say(out, "etcd %s: no fleet, but %s of a log\n", prefix, plural(int(e.Entries), "key"))
	default:
		say(out, "etcd %s: fleet %s, founded %s, %s, up to %d\n", prefix, e.Fleet, e.Founded.UTC().Format(time.RFC3339), entriesText(e.Entries), e.Head)
	}
	if e.Others > 0 {
		say(out, "etcd %s: %s that hdsd does not know, which stay\n", prefix, plural(int(e.Others), "key"))
	}
	say(out, "found: remove %s from etcd, and begin a fleet whose log goes on after entry %d\n", entriesText(e.Entries), f.After)
}

func entriesText(count uint64) string {
	if count == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", count)
}

// confirm asks whether to go on.
func (f *foundingFlags) confirm(command *cobra.Command) error {
	if f.yes {
		return nil
	}
	if input, ok := command.InOrStdin().(*os.File); !ok || !term.IsTerminal(int(input.Fd())) {
		return errors.New("nothing has changed: give --yes if that is what you want")
	}
	_, err := confirmed(command.InOrStdin(), command.ErrOrStderr(), "all other replicas must begin with an empty data_dir afterwards")
	return err
}
