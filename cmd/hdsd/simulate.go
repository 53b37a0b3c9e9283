package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"hdsd/config"
	"hdsd/internal/table"
	"hdsd/simulate"
	"hdsd/simulate/scenario"
)

// mostLosses bounds the tried losses of checkers, and of zones.
const mostLosses = 1000

// simulation has the flags of 'hdsd simulate'.
type simulation struct{ config, fleet, output, color string }

func newSimulate() *cobra.Command {
	var s simulation
	command := &cobra.Command{
		Use:   "simulate -c FILE --fleet FLEET",
		Short: "Show what a fleet of checkers would have to do",
		Long: `simulate makes the plan that hdsd would make for the clusters of a
configuration and the checkers that FLEET describes. It shows how even the plan
is, what the loss of a checker or a zone would move, what nobody could check,
and how many checks a second data planes would make if each checked for itself.
FLEET can have clusters that do not exist yet.`,
		Example: "  hdsd simulate -c hdsd.yaml --fleet fleet.yaml",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := s.check(); err != nil {
				return err
			}
			screen, err := table.ScreenOf(command.OutOrStdout(), s.color)
			if err != nil {
				return usageError{err}
			}
			started := time.Now()
			stop := startProgress(command.ErrOrStderr(), func() string {
				return fmt.Sprintf("simulating for %s", table.Shortly(time.Since(started).Truncate(time.Second)))
			})
			defer stop()
			result, err := s.run(command.ErrOrStderr(), stop)
			stop()
			if err != nil {
				return err
			}
			if s.output == "json" {
				return json.NewEncoder(command.OutOrStdout()).Encode(result)
			}
			return printSimulation(command.OutOrStdout(), screen, result)
		},
	}
	addConfigFlag(command, &s.config)
	flags := command.Flags()
	flags.StringVar(&s.fleet, "fleet", "", "`file` that describes the fleet (YAML or JSON)")
	flags.StringVarP(&s.output, "output", "o", "table", "table or json (one object)")
	flags.StringVar(&s.color, "color", "auto", "`when` tables have colour: auto (on a terminal, unless NO_COLOR is set), always or never")
	_ = command.MarkFlagFilename("fleet", "yaml", "yml", "json")
	completeWords(command, "output", "table", "json")
	completeWords(command, "color", "auto", "always", "never")
	return command
}

func (s *simulation) check() error {
	if err := needConfig(s.config); err != nil {
		return err
	}
	if s.fleet == "" {
		return usageError{errors.New("--fleet FILE is missing: the checkers to plan for")}
	}
	if s.output != "table" && s.output != "json" {
		return usageError{fmt.Errorf("--output %q: want table or json", s.output)}
	}
	return nil
}

// run reads the files and makes the plan. It calls telling before it prints problems.
func (s *simulation) run(w io.Writer, telling func()) (*simulate.Result, error) {
	read, err := s.read(w, telling)
	if err != nil {
		return nil, err
	}
	fleet := simulate.New(read.Input)
	began := time.Now()
	fleet.Plan()
	elapsed := time.Since(began)
	result := fleet.Result(mostLosses)
	result.Plan.Seconds = elapsed.Seconds()
	if read.Ignored > 0 {
		telling()
		say(w, "hdsd: the sources have %d problems, and the plan leaves out what is bad: 'hdsd validate -c %s' shows them\n", read.Ignored, s.config)
	}
	return result, nil
}

// read reads the files, and prints their problems.
func (s *simulation) read(w io.Writer, telling func()) (scenario.Scenario, error) {
	var empty scenario.Scenario
	loaded, err := load(s.config, w)
	if err != nil {
		return empty, err
	}
	fleet, problems := config.LoadFleet(s.fleet)
	if len(problems) > 0 {
		return empty, tell(w, telling, s.fleet, problems)
	}
	checkers, problems := checkersOf(fleet)
	if len(problems) > 0 {
		return empty, tell(w, telling, s.fleet, problems)
	}
	read := scenario.Read(loaded, fleet, checkers)
	if len(read.Problems) > 0 {
		return empty, tell(w, telling, "what is to be simulated", read.Problems)
	}
	return read, nil
}

// tell prints problems, none of which is a warning.
func tell[P fmt.Stringer](w io.Writer, telling func(), subject string, problems []P) error {
	telling()
	for _, problem := range problems {
		printProblem(w, problem, false)
	}
	return reported{fmt.Errorf("%s has %d problems", subject, len(problems))}
}
