package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hdsd/internal/demo"
)

func newDemo() *cobra.Command {
	var o demo.Options
	command := &cobra.Command{
		Use:   "demo",
		Short: "Run all on this machine: checkers, upstreams that fail, an Envoy",
		Long: `demo runs a coordinator, a checker in each of three zones, upstreams that fail
and recover, and a data plane, all on loopback, and says where to look. Checkers
and data plane are real Envoys where Python's pip can install one, else the
built-in checker. It holds what happens against what hdsd promises.

With --replicas, several hdsd share a log in an etcd, which needs its binary;
'make demo REPLICAS=3' builds it. The one that leads is killed.`,
		Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			o.Out, o.HDSD = command.OutOrStdout(), self
			if o.Replicas != 0 && (o.Replicas < 3 || o.Replicas > 5) {
				return usageError{fmt.Errorf("--replicas %d: want 3 to 5", o.Replicas)}
			}
			if o.Cache == "" {
				o.Cache = defaultCache()
			}
			return demo.Run(command.Context(), o)
		},
	}
	command.Flags().BoolVar(&o.Once, "once", false, "one scripted round, then stop; exit status 1 if a step fails")
	command.Flags().BoolVar(&o.NoEnvoy, "no-envoy", false, "use the built-in checker even if a real Envoy is available")
	command.Flags().StringVar(&o.Cache, "cache", "", "`folder` for the downloaded Envoy (default: the user's cache folder)")
	command.Flags().IntVar(&o.Replicas, "replicas", 0, "so many hdsd that share a log in etcd, 3 to 5, instead of one")
	command.Flags().StringVar(&o.Etcd, "etcd", "etcd", "`path` of the etcd binary, for --replicas")
	_ = command.MarkFlagDirname("cache")
	return command
}

// defaultCache is .cache beside a checkout's go.mod, else the user's.
func defaultCache() string {
	if _, err := os.Stat("go.mod"); err == nil {
		return ".cache"
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "hdsd")
}
