package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"hdsd/bootstrap"
)

func newBootstrap() *cobra.Command {
	command := &cobra.Command{
		Use:   "bootstrap checker|client",
		Short: "Print the bootstrap of an Envoy that works with hdsd",
		Long: `bootstrap prints what to start an Envoy with: envoy -c FILE. It connects to
nothing; the flags say it all.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("there is no bootstrap of a %q: want checker or client", args[0])
			}
			return errors.New("say of what: checker or client")
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	command.AddCommand(newBootstrapChecker(), newBootstrapClient())
	return command
}

// envoyFlags are the common flags of all bootstraps.
type envoyFlags struct {
	server       string
	tls          tlsFlags
	node         nodeFlags
	group, admin string
	output       string
}

func (f *envoyFlags) addTo(command *cobra.Command, group, admin string) {
	addServerFlag(command, &f.server)
	command.Flags().Lookup("server").Usage = severalServers
	f.node.addTo(command)
	flags := command.Flags()
	flags.StringVar(&f.group, "node-cluster", group, "the `group` of Envoys it belongs to")
	flags.StringVar(&f.admin, "admin", admin, "`IP:PORT` of the Envoy's admin interface")
	flags.StringVarP(&f.output, "output", "o", "yaml", "yaml (with comments) or json")
	f.tls.addTo(command)
	completeWords(command, "output", "yaml", "json")
	completeWords(command, "node-cluster")
	completeWords(command, "admin")
}

// parts returns the node and the server of the flags.
func (f *envoyFlags) parts() (node bootstrap.Node, server bootstrap.Server, err error) {
	id, err := f.node.name()
	node = bootstrap.Node{ID: id, Cluster: f.group, Locality: f.node.locality, Metadata: f.node.metadata, Admin: f.admin}
	servers := strings.Split(f.server, ",")
	server = bootstrap.Server{Address: servers[0], Replicas: servers[1:]}
	if f.tls != (tlsFlags{}) {
		server.TLS = &bootstrap.TLS{CA: f.tls.ca, Certificate: f.tls.certificate, Key: f.tls.key, Name: f.tls.name}
	}
	return node, server, err
}

// print writes a bootstrap. Its errors are those of the flags.
func (f *envoyFlags) print(w io.Writer, document interface{ YAML() ([]byte, error) }) error {
	if f.output != "yaml" && f.output != "json" {
		return usageError{fmt.Errorf("--output %q: want yaml or json", f.output)}
	}
	text, err := document.YAML()
	if err != nil {
		return usageError{err}
	}
	if f.output == "json" {
		if text, err = bootstrap.JSON(text); err != nil {
			return err
		}
	}
	_, err = w.Write(text)
	return err
}

func newBootstrapChecker() *cobra.Command {
	var f envoyFlags
	command := &cobra.Command{
		Use:   "checker",
		Short: "Print the bootstrap of an Envoy that checks endpoints for hdsd",
		Long: `checker prints the bootstrap of an Envoy that takes health checks from hdsd and
reports what it finds. File names are those on the Envoy's machine.`,
		Example: "  hdsd bootstrap checker --server 10.0.0.5:18000 --id checker-7 --region eu --zone b > checker.yaml",
		Args:    noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			node, server, err := f.parts()
			if err != nil {
				return err
			}
			return f.print(command.OutOrStdout(), bootstrap.Checker{Node: node, Server: server})
		},
	}
	f.addTo(command, "checkers", "127.0.0.1:9901")
	return command
}

func newBootstrapClient() *cobra.Command {
	var f envoyFlags
	var client bootstrap.Client
	command := &cobra.Command{
		Use:   "client",
		Short: "Print the bootstrap of a data plane, an Envoy that asks hdsd",
		Long: `client prints the bootstrap of an Envoy that takes clusters by CDS, and their
endpoints with their health by EDS, over ADS. With --eds it takes the endpoints
of the named clusters only. File names are those on the Envoy's machine.`,
		Example: "  hdsd bootstrap client --server 10.0.0.5:18000 --id edge-1 > data-plane.yaml\n" +
			"  hdsd bootstrap client --eds web,pay --listen 127.0.0.1:10000 --route web",
		Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if command.Flags().Changed("listen") && client.Route == "" {
				return usageError{errors.New("--listen does nothing without --route: name the cluster that the listener routes to")}
			}
			var err error
			if client.Node, client.Server, err = f.parts(); err != nil {
				return err
			}
			return f.print(command.OutOrStdout(), client)
		},
	}
	f.addTo(command, "data-planes", "127.0.0.1:9902")
	flags := command.Flags()
	flags.BoolVar(&client.Delta, "delta", true, "delta xDS; --delta=false is state of the world")
	flags.StringSliceVar(&client.Clusters, "eds", nil, "take the endpoints of these `clusters` only, instead of all clusters by CDS")
	flags.StringVar(&client.Route, "route", "", "add a listener that routes all HTTP to this `cluster`")
	flags.StringVar(&client.Listen, "listen", "127.0.0.1:10000", "`IP:PORT` of that listener; only with --route")
	for _, flag := range []string{"listen", "eds", "route"} {
		completeWords(command, flag)
	}
	return command
}
