package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"hdsd/config"
	"hdsd/coordinator"
	configv1 "hdsd/gen/hdsd/config/v1"
)

func newServe() *cobra.Command {
	var path string
	var logs logFlags
	command := &cobra.Command{
		Use:     "serve -c FILE",
		Short:   "Run the coordinator; SIGHUP reads the configuration again",
		Long:    "serve runs the coordinator until SIGTERM or SIGINT. SIGHUP has it read its\nconfiguration again.",
		Example: "  hdsd serve -c hdsd.yaml",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			log, err := logs.logger(command.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := needConfig(path); err != nil {
				return err
			}
			boundMemory(log)
			return serve(command.Context(), path, startTime, log, command.ErrOrStderr())
		},
	}
	addConfigFlag(command, &path)
	logs.addTo(command)
	return command
}

func addConfigFlag(command *cobra.Command, path *string) {
	command.Flags().StringVarP(path, "config", "c", "", "configuration `file` (YAML or JSON)")
	_ = command.MarkFlagFilename("config", "yaml", "yml", "json")
}

func needConfig(path string) error {
	if path == "" {
		return usageError{errors.New("--config FILE is missing: the configuration to use")}
	}
	return nil
}

// serve runs a coordinator, whose start may take so long, and reloads it at each SIGHUP.
func serve(ctx context.Context, path string, start time.Duration, log zerolog.Logger, w io.Writer) error {
	// Do this first: an unhandled SIGHUP would end the process.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	loaded, err := load(path, w)
	if err != nil {
		return err
	}
	ready := make(chan struct{}, 1)
	built, err := coordinator.New(ctx, loaded, coordinator.Options{Log: log, Version: version, Memory: memory(), Ready: func() { ready <- struct{}{} }})
	if err != nil {
		return err
	}
	garbage, tuned := &collector{}, time.NewTicker(tuneEvery)
	defer tuned.Stop()
	started := time.NewTimer(start)
	defer started.Stop()
	done := make(chan error, 1)
	go func() { done <- built.Run(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case <-ready:
			garbage.begin()
		case <-started.C:
			garbage.begin()
			debug.FreeOSMemory()
		case <-tuned.C:
			garbage.tune()
		case <-hangup:
			reload(built, path, log)
		}
	}
}

// These variables place a replica, so that all replicas can have one configuration.
const (
	nodeIDVariable    = "HDSD_NODE_ID"
	advertiseVariable = "HDSD_ADVERTISE"
)

// placed replaces what the environment says of this replica.
func placed(c *configv1.Config) {
	c.NodeId = cmp.Or(os.Getenv(nodeIDVariable), c.GetNodeId())
	if peer := c.GetReplication().GetPeer(); peer != nil {
		peer.Advertise = cmp.Or(os.Getenv(advertiseVariable), peer.GetAdvertise())
	}
}

// load reads the configuration, and prints every problem.
func load(path string, w io.Writer) (*configv1.Config, error) {
	loaded, problems := config.Load(path, placed)
	if bad := printProblems(w, problems, func(p config.Problem) bool { return p.Warning }); bad > 0 {
		return nil, reported{fmt.Errorf("%s has %d problems", path, bad)}
	}
	return loaded, nil
}

// printProblems prints problems, one a line, and counts those that are not warnings.
func printProblems[Problem fmt.Stringer](w io.Writer, problems []Problem, warning func(Problem) bool) (bad int) {
	for _, problem := range problems {
		printProblem(w, problem, warning(problem))
		if !warning(problem) {
			bad++
		}
	}
	return bad
}

// printProblem prints a problem on one line, marked if it is a warning.
func printProblem(w io.Writer, problem fmt.Stringer, warning bool) {
	mark := ""
	if warning {
		mark = " (warning)"
	}
	say(w, "%s%s\n", problem, mark)
}

// reload reads the configuration again; a bad one changes nothing.
func reload(built *coordinator.Coordinator, path string, log zerolog.Logger) {
	loaded, problems := config.Load(path, placed)
	bad := false
	for _, problem := range problems {
		level := zerolog.WarnLevel
		if !problem.Warning {
			level, bad = zerolog.ErrorLevel, true
		}
		log.WithLevel(level).Str("event", "config_problem").Msg(problem.String())
	}
	if bad {
		log.Error().Str("event", "reload_refused").Msg("the configuration has problems; nothing was changed")
		return
	}
	needRestart, err := built.Reload(loaded)
	if err != nil {
		log.Error().Str("event", "reload_refused").Err(err).Msg("nothing was changed")
		return
	}
	if len(needRestart) > 0 {
		log.Warn().Str("event", "restart_needed").Strs("fields", needRestart).
			Msg("these fields changed but take effect only after a restart")
	}
	log.Info().Str("event", "reloaded").Msg("configuration reloaded")
}
