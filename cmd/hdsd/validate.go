package main

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"hdsd/config"
	"hdsd/coordinator"
	"hdsd/source"
)

func newValidate() *cobra.Command {
	var path string
	command := &cobra.Command{
		Use:   "validate -c FILE",
		Short: "Check the configuration and every cluster of its file sources",
		Long: `validate prints every problem as "file:line: what is wrong and how to put it
right" and exits with 1 if there is one. What depends on the checkers' binaries
is a warning.`,
		Example: "  hdsd validate -c hdsd.yaml",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := needConfig(path); err != nil {
				return err
			}
			started := time.Now()
			stop := startProgress(command.ErrOrStderr(), func() string {
				return fmt.Sprintf("reading %s and its clusters for %s", path, shortly(time.Since(started).Truncate(time.Second)))
			})
			defer stop()
			return validate(path, command.OutOrStdout(), stop)
		},
	}
	addConfigFlag(command, &path)
	return command
}

// validate examines everything, then calls examined, then tells.
func validate(path string, to io.Writer, examined func()) error {
	loaded, problems := config.Examine(path)
	var findings coordinator.Findings
	if loaded != nil {
		findings = coordinator.Examine(loaded)
	}
	examined()
	out := bufio.NewWriter(to)
	bad := printProblems(out, problems, func(p config.Problem) bool { return p.Warning })
	bad += printProblems(out, findings.Problems, func(p source.Problem) bool { return p.Warning })
	if bad == 0 {
		fmt.Fprintf(out, "%s: %d clusters with %d endpoints, all good\n", path, findings.Clusters, findings.Endpoints)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return reported{fmt.Errorf("%d problems", bad)}
	}
	return nil
}
