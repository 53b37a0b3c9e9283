package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/table"
	"hdsd/store"
)

func newBackup() *cobra.Command {
	var c client
	command := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the database of a running coordinator into a file",
		Long: `backup copies the database of a coordinator as it is at one moment, while the
coordinator goes on working. It reads the copy from end to end before it gives
it the name FILE; only then does the copy replace an older one. '-' writes it
to standard output, unread. 'hdsd restore' puts a copy in place.`,
		Example: "  hdsd backup /backup/hdsd-$(date +%F).db\n  hdsd backup - | zstd > hdsd.db.zst",
		Args:    oneFile,
		RunE: func(command *cobra.Command, args []string) error {
			b := &backup{client: &c}
			defer startProgress(command.ErrOrStderr(), b.progress)()
			if args[0] == "-" {
				return b.toOutput(command)
			}
			return b.toFile(command, args[0])
		},
	}
	c.addOperatorFlags(command)
	return command
}

// oneFile checks the arguments of commands that take FILE.
func oneFile(command *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes one argument, FILE, but was given %d", command.Name(), len(args))
	}
	return nil
}

// backup is a copy in progress.
type backup struct {
	client     *client
	done, size atomic.Int64
}

func (b *backup) progress() string {
	done, size := b.done.Load(), b.size.Load()
	switch {
	case size == 0:
		return "hdsd makes a copy"
	case done == size:
		return "checking the copy"
	}
	return fmt.Sprintf("%s of %s", bytesText(done), bytesText(size))
}

// fetch writes a copy, which is complete if there is no error.
func (b *backup) fetch(ctx context.Context, w io.Writer) error {
	return b.client.operate(ctx, func(ctx context.Context, control hdsdv1.ControlClient) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		parts, err := control.Backup(ctx, &hdsdv1.BackupRequest{})
		if err != nil {
			return err
		}
		for {
			part, err := parts.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if done := b.done.Load(); status.Code(err) == codes.Unavailable && done > 0 {
				return fmt.Errorf("%s stopped or was restarted when %s of %s had come: the copy is incomplete, start again",
					b.client.server, bytesText(done), bytesText(b.size.Load()))
			}
			if err != nil {
				return err
			}
			if _, err := w.Write(part.GetData()); err != nil {
				return err
			}
			b.size.Store(part.GetSize())
			b.done.Add(int64(len(part.GetData())))
		}
		if done, size := b.done.Load(), b.size.Load(); done != size || size == 0 {
			return fmt.Errorf("of %d bytes of the copy, %d have come: try again", size, done)
		}
		return nil
	})
}

func (b *backup) toOutput(command *cobra.Command) error {
	if table.IsTerminal(command.OutOrStdout()) {
		return usageError{errors.New("a database is nothing for a terminal: name a file, or send it to another program")}
	}
	return b.fetch(command.Context(), command.OutOrStdout())
}

func (b *backup) toFile(command *cobra.Command, path string) error {
	path, err := target(path)
	if err != nil {
		return err
	}
	folder := filepath.Dir(path)
	file, err := os.CreateTemp(folder, filepath.Base(path)+".unfinished-*")
	if bad, ok := errors.AsType[*fs.PathError](err); ok { // of a temporary name
		return fmt.Errorf("%s cannot be written: %w", path, bad.Err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // if it still has this name
	if err := b.fill(command.Context(), file); err != nil {
		return err
	}
	info, err := store.Examine(command.Context(), file.Name())
	if err != nil {
		return fmt.Errorf("the copy has come, but is of no use: %w", err)
	}
	if err := command.Context().Err(); err != nil {
		return err // cancelled during the check: there is no copy
	}
	if info.Rows != nil { // a damaged row is no reason to drop the copy
		path += ".damaged"
	}
	_, statErr := os.Lstat(path)
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	if err := store.SyncFolder(folder); err != nil {
		return err
	}
	if statErr == nil {
		say(command.ErrOrStderr(), "hdsd: the copy has replaced the existing %s\n", path)
	}
	say(command.OutOrStdout(), "%s: %s\n", path, copyText(&info))
	if info.Rows != nil {
		return fmt.Errorf("the history of %s is damaged, and so is its copy: %w", b.client.server, info.Rows)
	}
	return nil
}

// fill writes a copy to disk and closes the file.
func (b *backup) fill(ctx context.Context, file *os.File) error {
	buffered := bufio.NewWriterSize(io.NewOffsetWriter(file, 0), 1<<20) // at a place: test/disk records that
	err := b.fetch(ctx, buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// target returns the path of the copy, with links followed. It refuses to replace a
// file that is not a copy.
func target(path string) (string, error) {
	followed, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(followed)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no file: name one, or - for standard output", path)
	}
	if store.IsHistory(followed) {
		return "", fmt.Errorf("%s is what a coordinator works with: choose another name ('hdsd restore' puts a copy in place)", path)
	}
	return followed, nil
}

// copyText describes a copy.
func copyText(a *store.CopyInfo) string {
	period := ""
	if a.Transitions > 0 {
		period = fmt.Sprintf(" from %s to %s", a.First.UTC().Format(time.RFC3339), a.Last.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s%s, %s, %s", plural(a.Transitions, "transition"), period, plural(a.Clusters, "cluster"), bytesText(a.Bytes))
}
