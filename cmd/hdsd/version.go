package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the version of this binary.
var version = versionOf(debug.ReadBuildInfo())

func newVersion() *cobra.Command {
	var format string
	command := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this binary",
		Long:    "version prints the version of this binary, as hdsd --version does.",
		Example: "  hdsd version -o json",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			switch format {
			case "text":
				return printVersion(command)
			case "json":
				return json.NewEncoder(command.OutOrStdout()).Encode(struct {
					Version  string `json:"version"`
					Go       string `json:"go"`
					Platform string `json:"platform"`
				}{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
			}
			return usageError{fmt.Errorf("--output %q: want text or json", format)}
		},
	}
	command.Flags().StringVarP(&format, "output", "o", "text", "`format`: text or json")
	completeWords(command, "output", "text", "json")
	return command
}

// printVersion prints the version and the build of the binary.
func printVersion(command *cobra.Command) error {
	_, err := fmt.Fprintf(command.OutOrStdout(), "hdsd %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// versionOf returns the version of the module of a binary. It includes the revision if
// it is not a release. It is "dev" if the build has neither.
func versionOf(info *debug.BuildInfo, ok bool) string {
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}
