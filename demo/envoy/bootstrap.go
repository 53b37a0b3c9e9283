package envoy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"text/template"

	"hdsd/health"
)

// Checker says how an Envoy that checks endpoints is started.
type Checker struct {
	ID       string // node id
	HDS      string // host:port of the HDS server
	Binary   string // path of the Envoy
	Locality health.Locality
	Metadata map[string]string
	Args     []string // further arguments
	Folder   string   // where it works; one of its own where empty
}

// DataPlane says how an Envoy that serves traffic is started.
type DataPlane struct {
	ID       string // node id
	ADS      string // host:port of the ADS server
	Binary   string // path of the Envoy
	Locality health.Locality
	Delta    bool     // delta xDS, else state of the world
	CDS      bool     // clusters come over ADS, else those named in Clusters are in the bootstrap
	Clusters []string // EDS clusters with endpoints over ADS
	Listen   string   // host:port of the listener; a free one where empty
	Route    string   // the cluster that the listener routes to; the first of Clusters where empty
	Args     []string // further arguments
}

// StartChecker starts an Envoy that takes its health checks from an HDS
// server. It returns when the Envoy runs, connected or not.
func StartChecker(ctx context.Context, c Checker) (*Process, error) {
	bootstrap, err := render(c.Locality, c.Metadata, map[string]any{"ID": c.ID, "Server": c.HDS, "Checker": true})
	if err != nil {
		return nil, err
	}
	return launch(ctx, c.Binary, c.ID, c.Folder, bootstrap, c.Args...)
}

// StartDataPlane starts an Envoy that takes endpoints over ADS and routes
// HTTP requests to Process.Listen to one cluster. It returns when the Envoy
// runs, connected or not.
func StartDataPlane(ctx context.Context, d DataPlane) (*Process, error) {
	if d.Route == "" && len(d.Clusters) > 0 {
		d.Route = d.Clusters[0]
	}
	if d.Listen == "" {
		var err error
		if d.Listen, err = FreeAddress(); err != nil {
			return nil, err
		}
	}
	api := "GRPC"
	if d.Delta {
		api = "DELTA_GRPC"
	}
	bootstrap, err := render(d.Locality, nil, map[string]any{
		"ID": d.ID, "Server": d.ADS, "API": api, "CDS": d.CDS, "Clusters": d.Clusters, "Route": d.Route, "Listen": d.Listen,
	})
	if err != nil {
		return nil, err
	}
	p, err := launch(ctx, d.Binary, d.ID, "", bootstrap, d.Args...)
	if err != nil {
		return nil, err
	}
	p.Listen = d.Listen
	return p, nil
}

// FreeAddress gives a loopback address that nobody listened on a moment ago.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func render(l health.Locality, metadata map[string]string, values map[string]any) (string, error) {
	values["Locality"] = map[string]string{"region": l.Region, "zone": l.Zone, "sub_zone": l.SubZone}
	values["Metadata"] = metadata
	var out bytes.Buffer
	if err := bootstrapTemplate.Execute(&out, values); err != nil {
		return "", fmt.Errorf("writing a bootstrap: %w", err)
	}
	return out.String(), nil
}

var bootstrapTemplate = template.Must(template.New("bootstrap").Funcs(template.FuncMap{
	"json": func(v any) (string, error) {
		out, err := json.Marshal(v)
		return string(out), err
	},
	"address": func(hostPort string) (string, error) {
		host, port, err := net.SplitHostPort(hostPort)
		if err != nil {
			return "", err
		}
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return "", err
		}
		out, err := json.Marshal(map[string]any{"socket_address": map[string]any{"address": host, "port_value": number}})
		return string(out), err
	},
}).Parse(`
node: {id: {{json .ID}}, cluster: hdsd, locality: {{json .Locality}}{{if .Metadata}}, metadata: {{json .Metadata}}{{end}}}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
{{if .Checker}}
hds_config:
  api_type: GRPC
  transport_api_version: V3
  grpc_services: [{envoy_grpc: {cluster_name: xds}}]
{{else}}
dynamic_resources:
  ads_config:
    api_type: {{.API}}
    transport_api_version: V3
    grpc_services: [{envoy_grpc: {cluster_name: xds}}]
{{if .CDS}}  cds_config: {ads: {}, resource_api_version: V3}{{end}}
{{end}}
static_resources:
  clusters:
  - name: xds
    type: STATIC
    connect_timeout: 1s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment:
      cluster_name: xds
      endpoints: [{lb_endpoints: [{endpoint: {address: {{address .Server}}}}]}]
{{if not .CDS}}{{range .Clusters}}
  - name: {{json .}}
    type: EDS
    connect_timeout: 1s
    eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}
{{end}}{{end}}
{{if .Route}}
  listeners:
  - name: web
    address: {{address .Listen}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          route_config: {validate_clusters: false, virtual_hosts: [{name: web, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: {{json .Route}}}}]}]}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
{{end}}
`))
