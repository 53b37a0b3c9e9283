package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"istio.io/istio/pilot/test/xds"
	"istio.io/istio/pkg/log"
	"istio.io/istio/pkg/test"
)

func main() {
	address := flag.String("address", "127.0.0.1:15010", "serve at this address, without TLS")
	path := flag.String("config", "mesh.yaml", "read Istio's configuration from this file")
	flag.Parse()
	if err := serve(*address, *path); err != nil {
		fmt.Fprintln(os.Stderr, "istio:", err)
		os.Exit(1)
	}
}

// serve serves until it is told to stop.
func serve(address, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	quiet := log.DefaultOptions()
	quiet.SetDefaultOutputLevel(log.OverrideScopeName, log.ErrorLevel)
	if err := log.Configure(quiet); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	return test.Wrap(func(t test.Failer) {
		xds.NewFakeDiscoveryServer(t, xds.FakeOptions{
			ConfigString:    string(text),
			ListenerBuilder: func() (net.Listener, error) { return net.Listen("tcp", address) },
		})
		<-stop
	})
}
