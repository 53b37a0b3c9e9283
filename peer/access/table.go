package access

import (
	"net/http"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// Role is a set of rights.
type Role = configv1.Role

// The roles. Admin has all of them.
const (
	Checker   = configv1.Role_CHECKER
	DataPlane = configv1.Role_DATA_PLANE
	Viewer    = configv1.Role_VIEWER
	Operator  = configv1.Role_OPERATOR
	Admin     = configv1.Role_ADMIN
)

// Need is the requirement of a call.
type Need struct {
	Role Role
	Open bool // no role is needed

	Operators bool // OPERATOR suffices: the call reads what operators change
	Whole     bool // it concerns all clusters: grants for some do not suffice
}

var (
	open      = Need{Open: true}
	checker   = Need{Role: Checker}
	dataPlane = Need{Role: DataPlane}
	viewer    = Need{Role: Viewer}
	operator  = Need{Role: Operator}
	admin     = Need{Role: Admin}

	wholeViewer   = Need{Role: Viewer, Whole: true}
	wholeOperator = Need{Role: Operator, Whole: true}

	changeable      = Need{Role: Viewer, Operators: true}
	wholeChangeable = Need{Role: Viewer, Operators: true, Whole: true}
)

// Methods are the needs of each gRPC method.
var Methods = map[string]Need{
	"/envoy.service.health.v3.HealthDiscoveryService/StreamHealthCheck":    checker,
	"/envoy.service.health.v3.HealthDiscoveryService/FetchHealthCheck":     checker,
	"/envoy.service.discovery.v2.HealthDiscoveryService/StreamHealthCheck": checker,
	"/envoy.service.discovery.v2.HealthDiscoveryService/FetchHealthCheck":  checker,

	"/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources": dataPlane,
	"/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources":  dataPlane,
	"/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints":              dataPlane,
	"/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints":               dataPlane,
	"/envoy.service.endpoint.v3.EndpointDiscoveryService/FetchEndpoints":               dataPlane,
	"/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters":                 dataPlane,
	"/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters":                  dataPlane,
	"/envoy.service.cluster.v3.ClusterDiscoveryService/FetchClusters":                  dataPlane,

	"/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus": wholeViewer,
	"/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus":  wholeViewer,

	"/hdsd.v1.Query/ListEndpoints":    viewer,
	"/hdsd.v1.Query/ListTransitions":  viewer,
	"/hdsd.v1.Query/ListAvailability": viewer,
	"/hdsd.v1.Query/ListIncidents":    viewer,
	"/hdsd.v1.Query/ListEvents":       viewer,
	"/hdsd.v1.Query/ListClusters":     viewer,
	"/hdsd.v1.Query/ListCheckers":     viewer,
	"/hdsd.v1.Query/ListPaths":        viewer,
	"/hdsd.v1.Query/ListClients":      wholeViewer,
	"/hdsd.v1.Query/ListReplicas":     viewer,
	"/hdsd.v1.Query/GetStatus":        viewer,
	"/hdsd.v1.Query/GetOverview":      viewer,
	"/hdsd.v1.Query/Watch":            viewer,

	"/hdsd.v1.Control/GetFreeze":       changeable,
	"/hdsd.v1.Control/ListOverrides":   changeable,
	"/hdsd.v1.Control/PreviewOverride": changeable,
	"/hdsd.v1.Control/ListTrust":       changeable,
	"/hdsd.v1.Control/GetClock":        changeable,
	"/hdsd.v1.Control/ListAudit":       wholeViewer,
	"/hdsd.v1.Control/ListSources":     wholeChangeable,
	"/hdsd.v1.Control/AcceptSource":    wholeOperator,
	"/hdsd.v1.Control/ListReceivers":   wholeChangeable,
	"/hdsd.v1.Control/NotifyTest":      wholeOperator,
	"/hdsd.v1.Control/Freeze":          wholeOperator,
	"/hdsd.v1.Control/Unfreeze":        wholeOperator,
	"/hdsd.v1.Control/SetOverride":     operator,
	"/hdsd.v1.Control/ClearOverrides":  operator,
	"/hdsd.v1.Control/SetTrust":        wholeOperator,
	"/hdsd.v1.Control/ClearTrust":      wholeOperator,
	"/hdsd.v1.Control/ConfirmClock":    wholeOperator,
	"/hdsd.v1.Control/Annotate":        operator,
	"/hdsd.v1.Control/Backup":          admin,

	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      admin,
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": admin,
	"/grpc.channelz.v1.Channelz/GetTopChannels":                      admin,
	"/grpc.channelz.v1.Channelz/GetServers":                          admin,
	"/grpc.channelz.v1.Channelz/GetServer":                           admin,
	"/grpc.channelz.v1.Channelz/GetServerSockets":                    admin,
	"/grpc.channelz.v1.Channelz/GetChannel":                          admin,
	"/grpc.channelz.v1.Channelz/GetSubchannel":                       admin,
	"/grpc.channelz.v1.Channelz/GetSocket":                           admin,

	"/grpc.health.v1.Health/Check": open,
	"/grpc.health.v1.Health/List":  open,
	"/grpc.health.v1.Health/Watch": open,
}

// Relayed are the needs of gRPC methods that only the relay serves.
var Relayed = map[string]Need{
	"/envoy.service.listener.v3.ListenerDiscoveryService/StreamListeners":                dataPlane,
	"/envoy.service.listener.v3.ListenerDiscoveryService/DeltaListeners":                 dataPlane,
	"/envoy.service.route.v3.RouteDiscoveryService/StreamRoutes":                         dataPlane,
	"/envoy.service.route.v3.RouteDiscoveryService/DeltaRoutes":                          dataPlane,
	"/envoy.service.route.v3.ScopedRoutesDiscoveryService/StreamScopedRoutes":            dataPlane,
	"/envoy.service.route.v3.ScopedRoutesDiscoveryService/DeltaScopedRoutes":             dataPlane,
	"/envoy.service.route.v3.VirtualHostDiscoveryService/DeltaVirtualHosts":              dataPlane,
	"/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets":                      dataPlane,
	"/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets":                       dataPlane,
	"/envoy.service.runtime.v3.RuntimeDiscoveryService/StreamRuntime":                    dataPlane,
	"/envoy.service.runtime.v3.RuntimeDiscoveryService/DeltaRuntime":                     dataPlane,
	"/envoy.service.extension.v3.ExtensionConfigDiscoveryService/StreamExtensionConfigs": dataPlane,
	"/envoy.service.extension.v3.ExtensionConfigDiscoveryService/DeltaExtensionConfigs":  dataPlane,
	"/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats":                  dataPlane,
}

// Path is the needs of an HTTP path's requests: those that only read, and others.
type Path struct {
	Read, Change Need
}

// Paths are the needs of each HTTP path.
var Paths = map[string]Path{
	"/":             {open, open}, // the page. Its requests need roles
	"/app.css":      {open, open},
	"/app.js":       {open, open},
	"/licences.txt": {open, open},

	"/v3/discovery:health_check":  {checker, checker},
	"/v2/discovery:health_check":  {checker, checker},
	"/v3/discovery:endpoints":     {dataPlane, dataPlane},
	"/v3/discovery:clusters":      {dataPlane, dataPlane},
	"/v3/discovery:client_status": {wholeViewer, wholeViewer},

	"/v1/endpoints":    {viewer, viewer},
	"/v1/transitions":  {viewer, viewer},
	"/v1/availability": {viewer, viewer},
	"/v1/incidents":    {viewer, viewer},
	"/v1/events":       {viewer, viewer},
	"/v1/clusters":     {viewer, viewer},
	"/v1/checkers":     {viewer, viewer},
	"/v1/clients":      {wholeViewer, wholeViewer},
	"/v1/replicas":     {viewer, viewer},
	"/v1/status":       {viewer, viewer},
	"/v1/overview":     {viewer, viewer},
	"/v1/paths":        {viewer, viewer},
	"/v1/watch":        {viewer, viewer},
	"/v1/openapi.json": {viewer, viewer},
	"/v1/openapi.yaml": {viewer, viewer},

	"/v1/audit":             {wholeViewer, wholeViewer},
	"/v1/annotations":       {operator, operator},
	"/v1/freeze":            {changeable, wholeOperator},
	"/v1/overrides":         {changeable, operator},
	"/v1/overrides/preview": {changeable, changeable},
	"/v1/trust":             {changeable, wholeOperator},
	"/v1/clock":             {changeable, wholeOperator},
	"/v1/sources":           {wholeChangeable, wholeOperator},
	"/v1/notify":            {wholeChangeable, wholeOperator},

	"/metrics": {wholeViewer, wholeViewer},
	"/healthz": {open, open},
	"/readyz":  {open, open},
}

// OfMethod returns the need of a gRPC method.
func OfMethod(fullMethod string) Need {
	if need, ok := Methods[fullMethod]; ok {
		return need
	}
	if need, ok := Relayed[fullMethod]; ok {
		return need
	}
	return admin
}

// OfRequest returns the need of an HTTP request.
func OfRequest(method, path string) Need {
	needs, ok := Paths[path]
	switch {
	case !ok:
		return admin
	case method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions:
		return needs.Read
	}
	return needs.Change
}
