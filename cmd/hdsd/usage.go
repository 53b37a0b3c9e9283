package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// helpWidth is the width of help in columns.
const helpWidth = 80

// writeUsage writes the usage of a command, as cobra does, but with flags in helpWidth columns.
// It uses no template: with text/template, the linker keeps every method of every message.
func writeUsage(command *cobra.Command) error {
	var text strings.Builder
	text.WriteString("Usage:")
	if command.Runnable() {
		text.WriteString("\n  " + command.UseLine())
	}
	if command.HasAvailableSubCommands() {
		text.WriteString("\n  " + command.CommandPath() + " [command]")
	}
	if command.HasExample() {
		text.WriteString("\n\nExamples:\n" + command.Example)
	}
	if command.HasAvailableSubCommands() {
		writeCommands(&text, command)
	}
	if command.HasAvailableLocalFlags() {
		text.WriteString("\n\nFlags:\n" + strings.TrimRight(command.LocalFlags().FlagUsagesWrapped(helpWidth), "\n "))
	}
	if command.HasAvailableInheritedFlags() {
		text.WriteString("\n\nGlobal Flags:\n" + strings.TrimRight(command.InheritedFlags().FlagUsagesWrapped(helpWidth), "\n "))
	}
	if command.HasAvailableSubCommands() {
		say(&text, "\n\nUse %q for more information about a command.", command.CommandPath()+" [command] --help")
	}
	_, err := io.WriteString(command.OutOrStderr(), text.String()+"\n")
	return err
}

// writeCommands writes the commands below a command, by group.
func writeCommands(text *strings.Builder, command *cobra.Command) {
	groups := command.Groups()
	switch {
	case len(groups) == 0:
		groups = []*cobra.Group{{Title: "Available Commands:"}}
	case !command.AllChildCommandsHaveGroup():
		groups = append(groups, &cobra.Group{Title: "Additional Commands:"})
	}
	for _, group := range groups {
		text.WriteString("\n\n" + group.Title)
		for _, child := range command.Commands() {
			if child.GroupID == group.ID && (child.IsAvailableCommand() || child.Name() == "help") {
				say(text, "\n  %-*s %s", child.NamePadding(), child.Name(), child.Short)
			}
		}
	}
}
