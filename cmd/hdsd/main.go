package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"hdsd/internal/envoytypes"
)

// Exit statuses.
const (
	exitDone = iota
	exitFailed
	exitUsage
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its environment as parameters.
func run(ctx context.Context, args []string, out, errors io.Writer) int {
	envoytypes.Register()
	root := newRoot(out, errors)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	return exitStatus(err, command, errors)
}

// usageError is an error in the arguments of a command.
type usageError struct{ error }

// reported is an error that the user has already seen.
type reported struct{ error }

func exitStatus(err error, command *cobra.Command, w io.Writer) int {
	var usage usageError
	var report reported
	switch {
	case err == nil, errors.Is(err, errQuit):
		return exitDone
	case errors.As(err, &report):
		return exitFailed
	case errors.As(err, &usage):
		say(w, "hdsd: %v\nUsage: %s (see '%s --help')\n", err, command.UseLine(), command.CommandPath())
		return exitUsage
	}
	say(w, "hdsd: %v\n", err)
	return exitFailed
}
