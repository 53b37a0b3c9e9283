package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"hdsd/store"
)

func newRestore() *cobra.Command {
	var config, folder string
	var damaged, salvage bool
	command := &cobra.Command{
		Use:   "restore [FILE] -c CONFIG",
		Short: "Put a copy of the database in place, while no coordinator runs",
		Long: `restore puts a copy that 'hdsd backup' wrote in the place of a coordinator's
database. It reads FILE from end to end first, and keeps the old database beside
the new one, under a name with the date. Stop the coordinator first. After an
error, everything is as it was.

With --salvage, FILE may be damaged in any way; without FILE it is the database
itself. restore then makes a new database of every value that can be read and
whose checksum is right, and prints what is lost.`,
		Example: "  hdsd restore /backup/hdsd-2026-01-02.db -c hdsd.yaml\n  hdsd restore hdsd.db --data-dir /var/lib/hdsd\n  hdsd restore --salvage -c hdsd.yaml",
		Args: func(command *cobra.Command, args []string) error {
			if salvage && len(args) == 0 {
				return nil
			}
			return oneFile(command, args)
		},
		RunE: func(command *cobra.Command, args []string) error {
			if (config == "") == (folder == "") {
				return usageError{errors.New("name either --config FILE or --data-dir DIR: where to put it")}
			}
			if config != "" {
				loaded, err := load(config, command.ErrOrStderr())
				if err != nil {
					return err
				}
				folder = loaded.GetDataDir()
			}
			if salvage {
				return salvageInto(command.Context(), command.OutOrStdout(), folder, strings.Join(args, ""))
			}
			return restore(command.Context(), command.OutOrStdout(), command.ErrOrStderr(), folder, args[0], damaged)
		},
	}
	addConfigFlag(command, &config)
	command.Flags().StringVar(&folder, "data-dir", "", "`folder` of the database, in place of a configuration")
	_ = command.MarkFlagDirname("data-dir")
	command.Flags().BoolVar(&damaged, "damaged", false, "restore a copy with damaged values; queries leave them out")
	command.Flags().BoolVar(&salvage, "salvage", false, "keep what can be read of a damaged FILE, or of the database itself")
	return command
}

func restore(ctx context.Context, out, progress io.Writer, folder, origin string, damaged bool) error {
	var done, size atomic.Int64
	stop := startProgress(progress, func() string {
		if done.Load() == size.Load() {
			return "checking " + origin
		}
		return fmt.Sprintf("%s of %s", bytesText(done.Load()), bytesText(size.Load()))
	})
	restored, err := store.Restore(ctx, folder, origin, store.RestoreOptions{
		AcceptDamaged: damaged,
		Progress:      func(d, s int64) { done.Store(d); size.Store(s) },
	})
	stop()
	if restored.Rows != nil && !damaged && err != nil {
		return fmt.Errorf("%w; --damaged restores it anyway", err)
	}
	if err != nil {
		return err
	}
	say(out, "%s: %s\n", restored.Path, copyText(&restored.CopyInfo))
	if restored.Rows != nil {
		say(out, "damaged, and left out of answers: %v\n", restored.Rows)
	}
	if restored.Kept != "" {
		say(out, "the old database is kept: %s\n", restored.Kept)
	}
	if restored.Frozen {
		sayLine(out, "hdsd was frozen when the copy was made, and will be: 'hdsd unfreeze' ends that")
	}
	sayLine(out, "now start hdsd: until the checkers report, it publishes the health that is in the copy")
	return nil
}

// salvageInto makes a new database of the readable part of a damaged one.
func salvageInto(ctx context.Context, out io.Writer, folder, origin string) error {
	done, err := store.Salvage(ctx, folder, origin)
	if err != nil {
		return err
	}
	say(out, "%s: %s\n", done.Path, copyText(&done.CopyInfo))
	for _, lost := range done.Lost {
		say(out, "lost: %s\n", lost)
	}
	if len(done.Lost) == 0 {
		sayLine(out, "nothing is lost")
	}
	if done.Kept != "" {
		say(out, "the old database is kept: %s\n", done.Kept)
	}
	if done.Frozen {
		sayLine(out, "hdsd was frozen, and will be: 'hdsd unfreeze' ends that")
	}
	sayLine(out, "now start hdsd, and look at 'hdsd freeze --show', 'hdsd override list' and 'hdsd checkers'")
	return nil
}
