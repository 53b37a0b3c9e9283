package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// newRoot makes a new command tree, so that a test can run it twice.
func newRoot(out, errors io.Writer) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "hdsd",
		Short: "Health Discovery Service coordinator for Envoy",
		Long: `hdsd coordinates the health checks of a fleet of Envoys: a few of them check
every endpoint. hdsd decides from their reports which endpoints are healthy,
records why, and tells every data plane by EDS.`,
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		Args:                       knownCommand,
		PersistentPreRunE:          func(command *cobra.Command, _ []string) error { return useContext(command) },
		RunE: func(command *cobra.Command, _ []string) error {
			if version {
				return printVersion(command)
			}
			return command.Help()
		},
	}
	root.Flags().BoolVarP(&version, "version", "v", false, "version for hdsd")
	root.SetUsageFunc(writeUsage)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "ask", Title: "Ask a running coordinator:"},
		&cobra.Group{ID: "change", Title: "Change what a running coordinator does:"},
		&cobra.Group{ID: "keep", Title: "Keep its history safe:"},
	)
	add(root, "run", newServe(), newValidate(), newSimulate(), newCheck(), newBootstrap(), newDemo())
	add(root, "ask", newStatus(), newDescribe(), newEndpoints(), newHistory(), newAvailability(), newWatch(), newClusters(), newCheckers(), newClients(), newReplicas(), newAudit(), newIncidents(), newTop())
	add(root, "change", newOverride(), newFreeze(), newUnfreeze(), newSource(), newNotify(), newAnnotate())
	add(root, "keep", newBackup(), newRestore(), newExport(), newClock(), newReplay())
	add(root, "ask", newContext())
	root.AddCommand(newVersion(), newMan())
	root.SetOut(out)
	root.SetErr(errors)
	nameShell(root)
	usageArgs(root)
	return root
}

// nameShell reports completion without a known shell as wrong usage.
func nameShell(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	completion.Args = func(*cobra.Command, []string) error {
		return errors.New("name a shell: bash, zsh, fish or powershell")
	}
	completion.RunE = func(*cobra.Command, []string) error { return nil }
}

// knownCommand refuses an unknown command, and suggests a known one.
func knownCommand(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	meant := ""
	if alike := command.SuggestionsFor(args[0]); len(alike) > 0 {
		meant = fmt.Sprintf(" (did you mean %s?)", strings.Join(alike, " or "))
	}
	return fmt.Errorf("there is no command %q%s", args[0], meant)
}

func add(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, command := range commands {
		command.GroupID = group
		root.AddCommand(command)
	}
}

// noArgs checks the arguments of commands without any.
func noArgs(command *cobra.Command, args []string) error {
	switch text := strings.Join(args, " "); {
	case len(args) == 0:
		return nil
	case len(args) == 1 && command.Flags().Lookup("config") != nil:
		return fmt.Errorf("%s takes no arguments, but was given %q: did you mean -c %s?", command.Name(), text, text)
	default:
		return fmt.Errorf("%s takes no arguments, but was given %q", command.Name(), text)
	}
}

// endpointArgs checks the arguments [CLUSTER [ADDRESS]].
func endpointArgs(command *cobra.Command, args []string) error {
	if len(args) > 2 {
		return fmt.Errorf("%s takes at most 2 arguments, CLUSTER and ADDRESS, but was given %q", command.Name(), strings.Join(args, " "))
	}
	return nil
}

// usageArgs reports wrong arguments of every command as wrong usage, and keeps shells
// from offering files to commands that take none.
func usageArgs(command *cobra.Command) {
	if check := command.Args; check != nil {
		if command.ValidArgsFunction == nil && check(command, []string{"x"}) != nil {
			command.ValidArgsFunction = cobra.NoFileCompletions
		}
		command.Args = func(command *cobra.Command, args []string) error {
			if err := check(command, args); err != nil {
				return usageError{err}
			}
			return nil
		}
	}
	for _, child := range command.Commands() {
		usageArgs(child)
	}
}
