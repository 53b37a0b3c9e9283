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
				_, err := fmt.Fprintln(command.OutOrStdout(), "hdsd", versionText())
				return err
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

// versionText is the version with how the binary was built.
func versionText() string {
	return fmt.Sprintf("%s (%s, %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// versionOf returns the version of the module of a binary. It includes the revision if
// it is not a release. It is "dev" if the build has neither.
func versionOf(info *debug.BuildInfo, known bool) string {
	if !known || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}
