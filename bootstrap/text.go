package bootstrap

import "strings"

// The texts are plain Go: with text/template, the linker keeps every method of every message.

func (c Checker) text() string {
	return "# Bootstrap of an Envoy that checks endpoints for hdsd.\n" + c.Node.text() + `
  # GET /stats?filter=hds_delegate there shows whether checks arrive.

# What to check comes over one gRPC stream, and the reports go back on it.
hds_config:
  api_type: GRPC
  transport_api_version: V3
  grpc_services:
  - envoy_grpc: {cluster_name: hdsd}

static_resources:
  clusters:
` + c.Server.text() + "\n"
}

func (c Client) text() string {
	resources, api := "clusters, endpoints", "GRPC  # hdsd sends a whole resource at each change; DELTA_GRPC is leaner"
	clusters := `
  # hdsd's clusters have no health checks of their own (this Envoy need not
  # probe) and take their endpoints by EDS from the same stream.
  cds_config: {ads: {}, resource_api_version: V3}`
	if len(c.Clusters) > 0 {
		resources, clusters = "endpoints", ""
	}
	if c.Delta {
		api = "DELTA_GRPC  # hdsd sends what has changed; GRPC would be all of it each time"
	}
	return "# Bootstrap of an Envoy that takes " + resources + " and their health from hdsd.\n" + c.Node.text() + `
  # GET /clusters there shows what hdsd said of each endpoint.

dynamic_resources:
  # One stream for all types, so that clusters come before their endpoints.
  ads_config:
    api_type: ` + api + `
    transport_api_version: V3
    grpc_services:
    - envoy_grpc: {cluster_name: hdsd}` + clusters + `

static_resources:` + c.listener() + `
  clusters:` + c.clusters() + "\n" + c.Server.text() + "\n"
}

// listener is the part that routes HTTP to the cluster Route.
func (c Client) listener() string {
	if c.Route == "" {
		return ""
	}
	return `
  listeners:
  - name: http
    address: ` + address(c.Listen) + `
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: http
          route_config:
            validate_clusters: false  # they come later, from hdsd
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes: [{match: {prefix: /}, route: {cluster: ` + text(c.Route) + `}}]
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}`
}

// clusters are those whose endpoints alone come from hdsd.
func (c Client) clusters() string {
	var b strings.Builder
	for _, name := range c.Clusters {
		b.WriteString(`
  - name: ` + text(name) + `
    type: EDS
    connect_timeout: 1s
    eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}`)
	}
	return b.String()
}

func (n Node) text() string {
	metadata := ""
	if len(n.Metadata) > 0 {
		metadata = "\n  metadata: " + mapping(n.Metadata)
	}
	return `node:
  id: ` + text(n.ID) + `  # every Envoy needs its own; envoy --service-node overrides it
  cluster: ` + text(n.Cluster) + `
  locality: ` + locality(n.Locality) + metadata + `
admin:  # for people and monitoring on this machine: whoever reaches it can stop this Envoy
  address: ` + address(n.Admin)
}

// text is the cluster through which an Envoy reaches hdsd.
func (s Server) text() string {
	discovery := "STATIC"
	if s.named() {
		discovery = "STRICT_DNS  # resolved again and again, so that hdsd may move"
	}
	var endpoints strings.Builder
	for _, replica := range s.addresses() {
		endpoints.WriteString("\n        - endpoint: {address: " + address(replica) + "}")
	}
	return `  # hdsd itself.
  - name: hdsd
    type: ` + discovery + `
    connect_timeout: 1s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config:
          http2_protocol_options:  # gRPC needs HTTP/2, and a cluster has HTTP/1.1 unless told
            # A connection that died in silence is found out and made anew.
            connection_keepalive: {interval: 5s, timeout: 2s}
    load_assignment:
      cluster_name: hdsd
      endpoints:
      - lb_endpoints:` + endpoints.String() + s.socket()
}

// socket is the transport socket for TLS.
func (s Server) socket() string {
	if s.TLS == nil {
		return ""
	}
	name := text(s.certificateName())
	sni, kind, certificate := "\n        sni: "+name, "DNS", ""
	if s.byIP() {
		sni, kind = "", "IP_ADDRESS"
	}
	if s.TLS.Certificate != "" {
		certificate = `
          tls_certificates:  # what hdsd knows this Envoy by; read at the start only
          - certificate_chain: {filename: ` + text(s.TLS.Certificate) + `}
            private_key: {filename: ` + text(s.TLS.Key) + `}`
	}
	return `
    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext` + sni + `
        common_tls_context:
          alpn_protocols: [h2]  # gRPC servers refuse connections that do not ask for it
          validation_context:
            trusted_ca: {filename: ` + text(s.TLS.CA) + `}
            match_typed_subject_alt_names:  # else any certificate of these authorities would do
            - {san_type: ` + kind + `, matcher: {exact: ` + name + `}}` + certificate
}
