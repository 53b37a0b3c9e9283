package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"hdsd/check"
)

func newCheck() *cobra.Command {
	var o check.Options
	var tls tlsFlags
	var metadata map[string]string
	var level, format string
	command := &cobra.Command{
		Use:   "check",
		Short: "Run the built-in checker: check what a coordinator assigns and report it",
		Long: `check connects to a coordinator as an Envoy with hds_config would, and does
HTTP/1.1 and TCP health checks as Envoy does. For fleets without Envoys.`,
		Example: "  hdsd check --server 10.0.0.5:18000 --id checker-7 --zone b",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			log, err := newLog(command.ErrOrStderr(), level, format)
			if err != nil {
				return err
			}
			if o.TLS, err = tls.config(); err != nil {
				return err
			}
			if o.NodeID == "" {
				if o.NodeID, err = os.Hostname(); err != nil {
					return fmt.Errorf("--id is missing, and the host's name is not known: %w", err)
				}
			}
			o.Log, o.Metadata, o.Version = log, metadata, version
			return check.Run(command.Context(), o)
		},
	}
	flags := command.Flags()
	addServerFlag(command, &o.Server)
	flags.StringVar(&o.NodeID, "id", "", "node `id` of this checker, unique in the fleet (default: the host's name)")
	flags.StringVar(&o.Locality.Region, "region", "", "region this checker is in")
	flags.StringVar(&o.Locality.Zone, "zone", "", "zone this checker is in")
	flags.StringVar(&o.Locality.SubZone, "sub-zone", "", "sub-zone this checker is in")
	flags.StringToStringVar(&metadata, "metadata", nil, "node metadata, as `key=value,...`")
	flags.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&format, "log-format", "json", "json or text")
	tls.addTo(command)
	return command
}
