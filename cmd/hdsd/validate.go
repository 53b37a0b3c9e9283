package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/spf13/cobra"

	"hdsd/config"
	"hdsd/coordinator"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/table"
	"hdsd/replica/maintenance"
	"hdsd/source"
	"hdsd/validate"
)

func newValidate() *cobra.Command {
	var path string
	var connect bool
	var clients string
	command := &cobra.Command{
		Use:   "validate -c FILE",
		Short: "Check the configuration and every cluster of its file sources",
		Long: `validate prints every problem as "file:line: what is wrong and how to put it
right", and exits with 1 if there is one. It warns of what works but may not be
intended.

With --connect, it also asks each management server once, as a start of hdsd
would, and examines what it says. A server has initial_fetch_timeout to answer,
at most 30 s. Certificates, tokens and the node are those of the configuration.
With replication, it asks each server of etcd and each other replica, too: whether
it answers, what this replica may do there, and whether the database fits.

With --clients grpc, it also says what gRPC's own xDS clients refuse in what hdsd
publishes, or read differently than Envoy.`,
		Example: "  hdsd validate -c hdsd.yaml\n  hdsd validate -c hdsd.yaml --connect\n  hdsd validate -c hdsd.yaml --clients grpc",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := needConfig(path); err != nil {
				return err
			}
			if clients != "" && clients != grpcClients {
				return fmt.Errorf("--clients %q: only %s is known; what Envoys refuse is said in any case", clients, grpcClients)
			}
			started := time.Now()
			stop := startProgress(command.ErrOrStderr(), func() string {
				return fmt.Sprintf("reading %s and its clusters for %s", path, table.Shortly(time.Since(started).Truncate(time.Second)))
			})
			defer stop()
			return runValidate(command.Context(), path, connect, clients == grpcClients, command.OutOrStdout(), stop)
		},
	}
	addConfigFlag(command, &path)
	command.Flags().BoolVar(&connect, "connect", false, "ask the management servers, etcd and the other replicas, too")
	command.Flags().StringVar(&clients, "clients", "", "say what other `clients` than Envoys do not take: grpc")
	completeWords(command, "clients", grpcClients)
	return command
}

// grpcClients is the value of --clients for gRPC's own xDS clients.
const grpcClients = "grpc"

// runValidate examines everything, calls examined, then prints the problems.
func runValidate(ctx context.Context, path string, connect, gRPC bool, w io.Writer, examined func()) error {
	loaded, problems := config.Examine(path, placed)
	var findings validate.Findings
	var node *corev3.Node
	if connect {
		node = coordinator.Node(loaded.GetNodeId(), version)
	}
	if loaded != nil {
		findings = validate.Examine(ctx, loaded, node)
		addReplication(ctx, loaded, connect, &findings)
	}
	examined()
	if err := ctx.Err(); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	bad := printProblems(out, problems, func(p config.Problem) bool { return p.Warning })
	if gRPC {
		findings.Problems = append(findings.Problems, findings.GRPC...)
	}
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
		sayNotes(out, path, &findings)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return reported{fmt.Errorf("%d problems", bad)}
	}
	return nil
}

// addReplication adds what is wrong with the replication, if there is one.
func addReplication(ctx context.Context, loaded *configv1.Config, connect bool, findings *validate.Findings) {
	switch {
	case loaded.GetReplication() == nil:
	case !connect:
		findings.Notes = append(findings.Notes, "replication was not examined: --connect asks etcd and the other replicas")
	default:
		for _, f := range maintenance.Examine(ctx, loaded) {
			if f.Note {
				findings.Notes = append(findings.Notes, f.Message)
			} else {
				findings.Problems = append(findings.Problems, source.Problem{Field: f.Field, Message: f.Message, Warning: f.Warning})
			}
		}
	}
}

// sayNotes prints notes that need no action.
func sayNotes(out io.Writer, path string, found *validate.Findings) {
	for _, need := range slices.Sorted(maps.Keys(found.Needs)) {
		verb := "need"
		if found.Needs[need] == 1 {
			verb = "needs"
		}
		missing := "checkers with the ability " + need
		if need == "GRPC" {
			missing = "gRPC health checks: use checkers of Envoy 1.38 or later, or hdsd check"
		}
		say(out, "%s: %s %s %s\n", path, plural(found.Needs[need], "cluster"), verb, missing)
	}
	for _, note := range found.Notes {
		say(out, "%s: %s\n", path, note)
	}
	for _, name := range found.Unread {
		if name == validate.Relay {
			say(out, "%s: the relay's clusters are those that its data planes have, and were not examined; --connect asks the control plane\n", path)
			continue
		}
		say(out, "%s: source %s was not examined: --connect asks management servers\n", path, name)
	}
}

// outcome describes an examination without errors.
func outcome(warnings int) string {
	if warnings == 0 {
		return "all good"
	}
	return plural(warnings, "warning")
}
