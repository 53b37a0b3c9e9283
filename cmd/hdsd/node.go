package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"hdsd/health"
)

// nodeFlags identify an Envoy, or the built-in checker.
type nodeFlags struct {
	id       string
	locality health.Locality
	metadata map[string]string
}

func (f *nodeFlags) addTo(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.id, "id", "", "node `id`, unique in the fleet (default: the host's name)")
	flags.StringVar(&f.locality.Region, "region", "", "`region` it is in")
	flags.StringVar(&f.locality.Zone, "zone", "", "`zone` it is in")
	flags.StringVar(&f.locality.SubZone, "sub-zone", "", "`sub-zone` it is in")
	flags.StringToStringVar(&f.metadata, "metadata", nil, "node metadata, as `key=value,...`")
	for _, name := range []string{"id", "region", "zone", "sub-zone", "metadata"} {
		_ = command.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// name returns the node id; the host's name by default.
func (f *nodeFlags) name() (string, error) {
	if f.id != "" {
		return f.id, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("--id is missing, and the host's name is not known: %w", err)
	}
	return host, nil
}
