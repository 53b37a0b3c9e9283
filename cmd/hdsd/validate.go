package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"hdsd/config"
	"hdsd/internal/table"
	"hdsd/source"
	"hdsd/validate"
)

func newValidate() *cobra.Command {
	var path string
	command := &cobra.Command{
		Use:   "validate -c FILE",
		Short: "Check the configuration and every cluster of its file sources",
		Long: `validate prints every problem as "file:line: what is wrong and how to put it
right", and exits with 1 if there is one. It warns of what depends on the checkers'
binaries, and of what works but may not be intended. It does not ask management
servers.`,
		Example: "  hdsd validate -c hdsd.yaml",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := needConfig(path); err != nil {
				return err
			}
			started := time.Now()
			stop := startProgress(command.ErrOrStderr(), func() string {
				return fmt.Sprintf("reading %s and its clusters for %s", path, table.Shortly(time.Since(started).Truncate(time.Second)))
			})
			defer stop()
			return runValidate(path, command.OutOrStdout(), stop)
		},
	}
	addConfigFlag(command, &path)
	return command
}

// runValidate examines everything, calls examined, then prints the problems.
func runValidate(path string, to io.Writer, examined func()) error {
	loaded, problems := config.Examine(path)
	var findings validate.Findings
	if loaded != nil {
		findings = validate.Examine(loaded)
	}
	examined()
	out := bufio.NewWriter(to)
	bad := printProblems(out, problems, func(p config.Problem) bool { return p.Warning })
	for i := range findings.Problems {
		findings.Problems[i].File = cmp.Or(findings.Problems[i].File, path)
	}
	warnings := len(problems) + len(findings.Problems)
	bad += printProblems(out, findings.Problems, func(p source.Problem) bool { return p.Warning })
	if bad == 0 {
		if findings.Checked == 0 && len(findings.Unread) == 0 {
			printProblem(out, source.Problem{File: path, Message: "no endpoint is checked: clusters need health_checks of their own, or default_health_checks"}, true)
			warnings++
		}
		say(out, "%s: %s with %s, %d checked, %s\n", path,
			plural(findings.Clusters, "cluster"), plural(findings.Endpoints, "endpoint"), findings.Checked, outcome(warnings))
		for _, name := range findings.Unread {
			say(out, "%s: source %s was not examined: validate does not ask management servers\n", path, name)
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return reported{fmt.Errorf("%d problems", bad)}
	}
	return nil
}

// outcome describes an examination without errors.
func outcome(warnings int) string {
	if warnings == 0 {
		return "all good"
	}
	return plural(warnings, "warning")
}
