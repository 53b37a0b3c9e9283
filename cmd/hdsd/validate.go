package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"hdsd/coordinator"
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
	loaded, err := load(path, to)
	if err != nil {
		return err
	}
	findings := coordinator.Examine(loaded)
	examined()
	bad := 0
	for _, finding := range findings.Problems {
		printProblem(to, finding, finding.Warning)
		if !finding.Warning {
			bad++
		}
	}
	if bad > 0 {
		return reported{fmt.Errorf("%d problems", bad)}
	}
	fmt.Fprintf(to, "%s: %d clusters with %d endpoints, all good\n", path, findings.Clusters, findings.Endpoints)
	return nil
}
