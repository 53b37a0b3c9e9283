package coordinator_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
)

// TestVersionsOfCluster covers that each version has the endpoints of its data planes, in queries and in the
// files of data_planes.eds_directory.
func TestVersionsOfCluster(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		first, _ := upstream(t)
		second, _ := upstream(t)
		m := newManagement(t)
		m.come()
		m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, first))
		folder := filepath.Join(t.TempDir(), "eds")
		s := newSite(t, t.TempDir(), relaying(m, "")+"data_planes: {eds_directory: "+folder+"}\n", "")
		s.ready()
		s.checker("c1")
		gone := s.client(delta, "edge-1", "web")
		s.eventually("health", func() bool { return gone.health("web") == "HEALTHY" })
		gone.stop()
		s.eventually("its stream to end", func() bool {
			_, text := s.get("/v1/clients")
			return !strings.Contains(text, "edge-1") && s.scrape().sum("hdsd_relay_streams") == 0
		})
		other := byEDS("web")
		other[0].(*clusterv3.Cluster).HealthChecks[0].GetHttpHealthCheck().Path = "/other"
		m.says(other, endpoints("web", corev3.HealthStatus_UNKNOWN, second))
		c := s.client(delta, "edge-2", "web")
		s.eventually("health by the other version", func() bool { return c.health("web") == "HEALTHY" })

		port := func(address string) string { return address[strings.LastIndex(address, ":")+1:] }
		lists := func(file, cluster string, address string) bool {
			r, a := &discoveryv3.DiscoveryResponse{}, &endpointv3.ClusterLoadAssignment{}
			wire, err := os.ReadFile(filepath.Join(folder, file))
			if err != nil || proto.Unmarshal(wire, r) != nil || len(r.GetResources()) != 1 || r.GetResources()[0].UnmarshalTo(a) != nil {
				return false
			}
			return a.GetClusterName() == cluster && len(a.GetEndpoints()) == 1 && len(a.GetEndpoints()[0].GetLbEndpoints()) == 1 &&
				strings.Contains(a.String(), port(address)) && a.GetEndpoints()[0].GetLbEndpoints()[0].GetHealthStatus() == corev3.HealthStatus_HEALTHY
		}
		s.eventually("a file of each version", func() bool {
			files, _ := filepath.Glob(filepath.Join(folder, "web*"))
			if len(files) != 2 || !slices.Contains(files, filepath.Join(folder, "web.pb")) {
				return false
			}
			slices.Sort(files)
			name := filepath.Base(files[0])
			own := strings.TrimSuffix(strings.Replace(name, "%23", "#", 1), ".pb")
			return lists("web.pb", "web", first) && own != "web" && lists(name, own, second)
		})
		for _, address := range []string{first, second} {
			if got := s.healthOf("web", address); got != "HEALTHY" {
				t.Errorf("/v1/endpoints?cluster=web says %q of %s", got, address)
			}
		}
	})
}
