package alone

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	loadstatsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"

	"hdsd/internal/yamlpb"
	"hdsd/test/envoy"
	"hdsd/test/fleet"
)

// Plane is one of the two data planes.
type Plane int

// The data planes.
const (
	Alone   Plane = iota // with the cluster's own health checks
	Through              // behind hdsd
)

func (p Plane) String() string { return [...]string{"alone", "through hdsd"}[p] }

// Options say how to start a Rig.
type Options struct {
	Version      string                                 // release of all Envoys; empty: envoy.Version
	Checkers     int                                    // number of checkers
	ResolveNames bool                                   // hdsd resolves names
	Config       string                                 // more of hdsd's configuration, as YAML
	Relay        bool                                   // clusters reach the data plane through hdsd's relay, from a control plane
	WholeState   bool                                   // the data plane behind hdsd asks for the state of the world
	Static       string                                 // more static clusters of all Envoys that serve and check, as YAML list items
	Loads        loadstatsv3.LoadReportingServiceServer // takes the load reports of both data planes; needs Relay
}

// Rig is two data planes and hdsd with its checkers. It holds the clusters of all
// cases that are played on it.
type Rig struct {
	Version  string
	Planes   [2]*envoy.Process
	Listen   [2]string // host:port of their listeners
	Hdsd     *fleet.Coordinator
	Checkers []*envoy.Process

	control    *fleet.ControlPlane // nil: hdsd reads files
	wholeState bool
	checker    string // more of the checkers' bootstrap

	dir     string // of the files of the data plane that is alone
	mu      sync.Mutex
	given   map[string]Resource // by name of the cluster
	results []Result
}

// Resource is a cluster and, of an EDS cluster, its assignment, as YAML.
type Resource struct{ Cluster, Assignment string }

// NewRig starts everything.
func NewRig(t testing.TB, o Options) *Rig {
	t.Helper()
	r := &Rig{Version: o.Version, dir: t.TempDir(), given: map[string]Resource{}}
	if r.Version == "" {
		r.Version = envoy.Version
	}
	r.Hdsd = fleet.Prepare(t, none, fleet.FastReports+o.Config)
	if o.ResolveNames {
		r.Hdsd.Configure("name: local,", "name: local, resolve_names: true,")
	}
	r.wholeState = o.WholeState
	if o.Static != "" {
		r.checker = "static_resources:\n  clusters:\n" + o.Static
	}
	if o.Relay {
		r.control = fleet.NewControlPlane(t)
		r.control.Loads = o.Loads
		r.Hdsd.RelayTo(r.control.Address, o.Config)
		r.control.Come()
	}
	r.Hdsd.Start()
	for range o.Checkers {
		r.AddChecker(t)
	}
	r.write(t)
	for plane := range r.Planes {
		r.Listen[plane] = envoy.FreeAddress(t)
		r.Planes[plane] = envoy.Start(t, r.Version, strings.ReplaceAll(Plane(plane).String(), " ", "-"), r.bootstrap(t, Plane(plane), o))
	}
	return r
}

// none is a cluster file in which nothing is checked.
const none = `resources: [{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: none, connect_timeout: 1s, type: STATIC}]`

// AddChecker starts one more checker, which outlives the case that asks for it.
func (r *Rig) AddChecker(t testing.TB) {
	t.Helper()
	i := len(r.Checkers)
	c := envoy.Checker{ID: fmt.Sprintf("checker-%d", i+1), HDS: r.Hdsd.GRPC, Version: r.Version}
	if r.checker != "" {
		c.Args = []string{"--config-yaml", r.checker}
	}
	c.Locality.Region, c.Locality.Zone = "eu", string(rune('a'+i%3))
	r.Checkers = append(r.Checkers, envoy.StartChecker(t, c))
}

// Put gives both data planes another version of a cluster, or takes it from them if
// it is empty.
func (r *Rig) Put(t testing.TB, name string, resource Resource) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given[name] = resource
	if resource.Cluster == "" {
		delete(r.given, name)
	}
	r.writeLocked(t)
}

func (r *Rig) write(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writeLocked(t)
}

// writeLocked writes the files of both data planes. An Envoy alone reads each
// assignment from a file of its own.
func (r *Rig) writeLocked(t testing.TB) {
	t.Helper()
	var clusters, all []string
	for _, name := range slices.Sorted(maps.Keys(r.given)) {
		given := r.given[name]
		path := filepath.Join(r.dir, name+".yaml")
		if given.Assignment == "" {
			replace(t, path, "resources: []") // an EDS cluster waits for its assignment
		} else {
			replace(t, path, "resources:\n"+item(assignmentType, given.Assignment))
			if shared := item(assignmentType, given.Assignment); !slices.Contains(all, shared) {
				all = append(all, shared)
			}
		}
		from := fmt.Sprintf("{resource_api_version: V3, path_config_source: {path: %q}}", path)
		clusters = append(clusters, item(clusterType, strings.ReplaceAll(given.Cluster, "$eds", from)))
		all = append(all, item(clusterType, strings.ReplaceAll(given.Cluster, "$eds", "{resource_api_version: V3, ads: {}}")))
	}
	replace(t, filepath.Join(r.dir, "cds.yaml"), "resources:\n"+strings.Join(append(clusters, item(clusterType, idle)), ""))
	if text := "resources:\n" + strings.Join(append(all, item(clusterType, idle)), ""); r.control == nil {
		r.Hdsd.SetClusters(text)
	} else {
		r.say(t, text)
	}
}

// say has the control plane give the data plane all resources.
func (r *Rig) say(t testing.TB, text string) {
	t.Helper()
	root, problems := yamlpb.ParseAsEnvoy("clusters", []byte(text))
	list := &discoveryv3.DiscoveryResponse{}
	if problems = append(problems, root.Decode(list)...); len(problems) > 0 {
		t.Fatal(problems)
	}
	var clusters, assignments []types.Resource
	for _, packed := range list.GetResources() {
		resource, err := packed.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		if cluster, is := resource.(*clusterv3.Cluster); is {
			clusters = append(clusters, cluster)
		} else {
			assignments = append(assignments, resource)
		}
	}
	r.control.SayClusters("data-plane", clusters, assignments)
}

const (
	clusterType    = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	assignmentType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	idle           = "name: none\nconnect_timeout: 1s\ntype: STATIC\n"
)

// item makes a message an item of a list of resources.
func item(kind, text string) string {
	if flow, ok := strings.CutPrefix(text, "{"); ok {
		return fmt.Sprintf("- {\"@type\": %s, %s\n", kind, flow)
	}
	return fmt.Sprintf("- \"@type\": %s\n  %s\n", kind, strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  "))
}

// replace moves a file into place.
func replace(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// bootstrap is that of a data plane: a listener that takes the cluster from the header
// x-cluster, and the endpoint, if any, from x-session.
func (r *Rig) bootstrap(t testing.TB, plane Plane, o Options) []byte {
	t.Helper()
	dynamic := fmt.Sprintf("cds_config: {resource_api_version: V3, path_config_source: {path: %q}}", filepath.Join(r.dir, "cds.yaml"))
	if plane == Through {
		kind := "DELTA_GRPC"
		if r.wholeState {
			kind = "GRPC"
		}
		dynamic = "ads_config: {api_type: " + kind + ", transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: hdsd}}]}\n" +
			"  cds_config: {resource_api_version: V3, ads: {}}"
	}
	static := staticCluster(t, "hdsd", r.Hdsd.GRPC) + o.Static
	if o.Loads != nil {
		static += staticCluster(t, "control", r.control.Address)
		dynamic += "\ncluster_manager: {load_stats_config: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: " + [...]string{"control", "hdsd"}[plane] + "}}]}}"
	}
	_, listen, _ := net.SplitHostPort(r.Listen[plane])
	return fmt.Appendf(nil, bootstrapText, strings.Fields(plane.String())[0], dynamic, listen, static)
}

const bootstrapText = `node: {id: data-plane, cluster: data-planes, metadata: {plane: %s}, locality: {region: eu, zone: a}}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  %s
static_resources:
  listeners:
  - name: front
    address: {socket_address: {address: 127.0.0.1, port_value: %s}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: front
          route_config:
            virtual_hosts:
            - {name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster_header: x-cluster, timeout: 2s}}]}
          http_filters:
          - name: envoy.filters.http.stateful_session
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3.StatefulSession
              strict: true
              session_state:
                name: envoy.http.stateful_session.header
                typed_config:
                  "@type": type.googleapis.com/envoy.extensions.http.stateful_session.header.v3.HeaderBasedSessionState
                  name: x-session
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
%s`

// staticCluster is a cluster of a gRPC server, as an item of a bootstrap's list.
func staticCluster(t testing.TB, name, address string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`  - name: %[1]s
    type: STATIC
    connect_timeout: 1s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment:
      cluster_name: %[1]s
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %[2]s, port_value: %[3]s}}}}]}]
`, name, host, port)
}
