package servers

import (
	"fmt"
	"os"
	"testing"

	"hdsd/test/envoy"
)

// TestRelay: with each server behind the relay, an Envoy gets endpoints with health, an idle
// server is asked nothing when health changes, and one that was killed is found again. A
// cluster that it no longer has goes.
func TestRelay(t *testing.T) {
	t.Parallel()
	for _, delta := range []bool{true, false} {
		t.Run(fmt.Sprintf("go-control-plane delta=%t", delta), func(t *testing.T) {
			t.Parallel()
			address := envoy.FreeAddress(t)
			exercise(t, &goServer{t: t, address: address}, "2", fromRelay(address, delta))
		})
		if os.Getenv("SERVERS") != "java" {
			continue
		}
		if delta { // it does not read initial_resource_versions, and never tells an Envoy what it removed
			continue
		}
		t.Run(fmt.Sprintf("java-control-plane delta=%t", delta), func(t *testing.T) {
			t.Parallel()
			address := envoy.FreeAddress(t)
			exercise(t, newJavaServer(t, address), "2", fromRelay(address, delta))
		})
	}
}

// fromRelay has an Envoy behind hdsd's relay to an address.
func fromRelay(address string, delta bool) func(*testing.T) *plane {
	return func(t *testing.T) *plane {
		t.Helper()
		built := serve(t, fmt.Sprintf("relay: {upstream: {api_config_source: {api_type: AGGREGATED_DELTA_GRPC, transport_api_version: V3, "+
			"grpc_services: [{google_grpc: {target_uri: %q, stat_prefix: server}}]}}}\n", address))
		process := envoy.StartDataPlane(t, envoy.DataPlane{ID: "plane", ADS: built.GRPCAddress(), Delta: delta, CDS: true, Route: "a"})
		return &plane{t, func() map[string]string {
			got := map[string]string{}
			for name, hosts := range process.Clusters(t) {
				for _, host := range hosts {
					got[name] = host.EDSHealth
				}
			}
			delete(got, "hdsd") // of the bootstrap
			return got
		}}
	}
}
