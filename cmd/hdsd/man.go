package main

import (
	"cmp"
	"fmt"
	"os"
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
			header := &doc.GenManHeader{Section: "1", Date: &manDate, Source: "hdsd", Manual: "hdsd"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("writing man pages: %w", err)
			}
			return nil
		},
	}
}

// listCommands adds to each page what its subcommands do.
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
