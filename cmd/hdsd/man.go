package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manDate is the date of man pages. It is constant, so that they change only with the
// commands.
var manDate = time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the man pages into a folder",
		Args:   cobra.ExactArgs(1),
		Hidden: true, // for makers of packages
		RunE: func(command *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := command.Root()
			root.DisableAutoGenTag = true
			listCommands(root)
			if err := writePages(root, args[0]); err != nil {
				return fmt.Errorf("writing man pages: %w", err)
			}
			return nil
		},
	}
}

// writePages writes the man pages of a command and its subcommands into a folder.
func writePages(command *cobra.Command, folder string) error {
	for _, child := range command.Commands() {
		if child.IsAvailableCommand() {
			if err := writePages(child, folder); err != nil {
				return err
			}
		}
	}
	var page bytes.Buffer
	header := &doc.GenManHeader{Section: "1", Date: &manDate, Source: "hdsd", Manual: "hdsd"}
	if err := doc.GenMan(command, header, &page); err != nil {
		return err
	}
	name := strings.ReplaceAll(command.CommandPath(), " ", "-") + ".1"
	return os.WriteFile(filepath.Join(folder, name), []byte(withSections(command, page.String())), 0o644)
}

// withSections adds the sections that come after OPTIONS to a page.
func withSections(command *cobra.Command, page string) string {
	var sections strings.Builder
	for _, s := range []struct {
		title string
		items []item
	}{{"EXIT STATUS", exitStatuses(command)}, {"ENVIRONMENT", environment(command)}, {"FILES", files(command)}} {
		if len(s.items) == 0 {
			continue
		}
		fmt.Fprintf(&sections, ".SH %s\n", s.title)
		for _, i := range s.items {
			fmt.Fprintf(&sections, ".TP\n\\fB%s\\fP\n%s\n\n", i.name, i.meaning)
		}
		sections.WriteByte('\n')
	}
	for _, next := range []string{".SH EXAMPLE\n", ".SH SEE ALSO\n"} {
		if before, after, found := strings.Cut(page, next); found {
			return before + sections.String() + next + after
		}
	}
	return page + sections.String()
}

// item is an entry of a section.
type item struct{ name, meaning string }

// failures are the reasons for which a command exits with 1 although it did its work.
var failures = map[string]string{
	"hdsd demo":        "A promise was broken, with --once; or it failed.",
	"hdsd notify test": "The receiver did not take the notification; or the command failed.",
	"hdsd replay":      "hdsd decides something else than then, or the file is damaged; or the command failed.",
	"hdsd status":      "Something needs attention, with --check; or the command failed.",
	"hdsd validate":    "There is a problem; or the command failed.",
}

func exitStatuses(command *cobra.Command) []item {
	return []item{
		{"0", "Done."},
		{"1", cmp.Or(failures[command.CommandPath()], "Failed.")},
		{"2", "Wrong usage."},
	}
}

// environment lists the variables that a command reads.
func environment(command *cobra.Command) (list []item) {
	hasFlag := func(flag string) bool { return command.Flags().Lookup(flag) != nil }
	add := func(wanted bool, name, meaning string) {
		if wanted {
			list = append(list, item{name, meaning})
		}
	}
	asks := hasFlag("server") && hasFlag("token-file")
	serves := command.CommandPath() == "hdsd serve"
	add(hasFlag("server"), "HDSD_SERVER", "HOST:PORT of the coordinator's gRPC address, if --server is not given.")
	add(hasFlag("config"), "HDSD_NODE_ID, HDSD_ADVERTISE", "They replace node_id and replication.peer.advertise of the configuration, so that all replicas can have the same one.")
	add(asks, "HDSD_TLS_CA, HDSD_TLS_CERT, HDSD_TLS_KEY", "Files for TLS, if the flags of the same names are not given.")
	add(asks, "HDSD_TOKEN", "A bearer token, if --token-file is not given.")
	add(hasFlag("color"), "NO_COLOR", "If it is set, tables have no colour.")
	add(hasFlag("color"), "COLUMNS", "The width that tables fit, in place of the terminal's.")
	add(hasFlag("no-pager"), "PAGER", "The program that shows what is longer than the terminal.")
	add(asks, "XDG_CONFIG_HOME", "The folder of hdsd/config.yaml, in place of ~/.config.")
	add(serves, "GOMEMLIMIT", "The limit of memory, in place of nine tenths of the control group's.")
	add(serves, "GOGC", "When to collect garbage, in place of what suits the memory in use.")
	return list
}

// files lists the files that a command reads besides those in its arguments.
func files(command *cobra.Command) []item {
	if command.Flags().Lookup("server") == nil && command.Name() != "context" && (command.Parent() == nil || command.Parent().Name() != "context") {
		return nil
	}
	return []item{{"~/.config/hdsd/config.yaml", "The contexts, as hdsd-context(1) describes them."}}
}

// listCommands adds the purpose of the subcommands to each page.
func listCommands(command *cobra.Command) {
	var list strings.Builder
	for _, child := range command.Commands() {
		if child.IsAvailableCommand() {
			fmt.Fprintf(&list, "**%s**\n: %s\n\n", child.CommandPath(), child.Short)
		}
		if child.Name() != "completion" { // cobra has its own text
			listCommands(child)
		}
	}
	if list.Len() > 0 {
		command.Long = cmp.Or(command.Long, command.Short) + "\n\n# COMMANDS\n" + list.String()
	}
}
