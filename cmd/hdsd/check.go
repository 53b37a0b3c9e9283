package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/check"
)

func newCheck() *cobra.Command {
	var o check.Options
	var c client
	var node nodeFlags
	var logs logFlags
	command := &cobra.Command{
		Use:   "check",
		Short: "Run the built-in checker: probe endpoints, and report",
		Long: `check connects to a coordinator as an Envoy with hds_config does. It does
HTTP/1.1, HTTP/2, TCP, gRPC and Redis health checks as Envoy does, also through
TLS. It is for fleets without Envoys. It reads --token-file for each connection.
Of several replicas, it connects to one, and goes on to the next one when it
loses that.`,
		Example: "  hdsd check --server 10.0.0.5:18000 --id checker-7 --zone b",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			log, err := logs.logger(command.ErrOrStderr())
			if err != nil {
				return err
			}
			servers := strings.Split(c.server, ",")
			for _, server := range servers {
				if err := checkServer(server); err != nil {
					return err
				}
			}
			o.Server, o.Replicas = servers[0], servers[1:]
			if o.TLS, err = c.tls.config(); err != nil {
				return err
			}
			present := presenter(func() (token, error) { return c.token(o.TLS != nil) })
			if _, err = present.GetRequestMetadata(command.Context()); err != nil {
				return err
			}
			o.Credentials = present
			if o.NodeID, err = node.name(); err != nil {
				return err
			}
			o.Explain = func(ctx context.Context, server string, err error) error {
				if status.Code(err) != codes.Unavailable {
					return err
				}
				return diagnose(ctx, server, o.TLS, status.Convert(err).Message())
			}
			o.Log, o.Locality, o.Metadata, o.Version = log, node.locality, node.metadata, version
			return check.Run(command.Context(), o)
		},
	}
	c.addConnection(command)
	command.Flags().Lookup("server").Usage = severalServers
	node.addTo(command)
	logs.addTo(command)
	return command
}
