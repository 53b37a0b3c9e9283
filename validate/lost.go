package validate

import (
	"cmp"
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/catalog"
	"hdsd/internal/dynamic"
)

// LostField is a field that has an effect only if an Envoy checks by itself, so that it has none
// in a cluster that hdsd checks.
type LostField struct {
	// Field is the full name of the field, such as
	// envoy.config.core.v3.HealthCheck.event_log_path, or of one with the same name in
	// each load balancing policy: *.slow_start_config.
	Field protoreflect.FullName

	Loss   string // the lost effect; "has no effect" if empty
	Effect string // the consequence; a sentence without a full stop
	Remedy string // the remedy; the same

	except func(*clusterv3.Cluster) bool // clusters in which the field has its full effect; nil: none
}

// LostFields are the fields of a cluster that lose their effect when hdsd checks it.
var LostFields = []LostField{
	{
		Field:  "envoy.config.cluster.v3.Cluster.close_connections_on_host_health_failure",
		Effect: "Envoy closes connections when its own check fails, not when EDS says that an endpoint is unhealthy, so open connections stay open",
		Remedy: "bound them by max_connection_duration or idle_timeout in the cluster's common_http_protocol_options, or use outlier_detection for TCP",
	},
	{
		Field:  "*.slow_start_config",
		Effect: "Envoy starts an endpoint slowly when it is added or passes Envoy's own check: one that recovers through hdsd gets its full share at once",
		Remedy: "let the endpoint answer its check only when it is warm",
	},
	{
		Field:  "envoy.config.cluster.v3.Cluster.outlier_detection",
		Loss:   "ends no ejection when a check passes",
		Effect: "an ejected endpoint stays out for its whole time, since only an Envoy's own check brings it back earlier",
		Remedy: "shorten base_ejection_time, or set successful_active_health_check_uneject_host: false if you want it so",
		except: func(c *clusterv3.Cluster) bool {
			uneject := c.GetOutlierDetection().GetSuccessfulActiveHealthCheckUnejectHost()
			return uneject != nil && !uneject.GetValue()
		},
	},
	{
		Field:  "envoy.config.cluster.v3.Cluster.filters",
		Effect: "checkers probe without these filters",
		Remedy: "choose a check that needs none of them",
	},
	{
		Field:  "envoy.config.cluster.v3.Cluster.upstream_bind_config",
		Loss:   "has no effect on health checks",
		Effect: "it names what the data plane's machine has, so checkers connect from addresses of their own",
		Remedy: "let the endpoints take connections from the checkers, too",
	},
	{
		Field:  "envoy.config.core.v3.HealthCheck.unhealthy_edge_interval",
		Effect: "checkers carry no traffic, so their Envoys use interval",
		Remedy: "choose interval for the probes that decide",
	},
	{
		Field:  "envoy.config.core.v3.HealthCheck.healthy_edge_interval",
		Effect: "checkers carry no traffic, so their Envoys use interval",
		Remedy: "choose interval for the probes that decide",
	},
	{
		Field:  "envoy.config.core.v3.HealthCheck.event_log_path",
		Effect: "nobody writes this file",
		Remedy: "read hdsd history or the events of hdsd's log",
	},
	{
		Field:  "envoy.config.core.v3.HealthCheck.event_logger",
		Effect: "no Envoy logs events of this check",
		Remedy: "read hdsd history or the events of hdsd's log",
	},
	{
		Field:  "envoy.config.core.v3.HealthCheck.event_service",
		Effect: "no Envoy sends events of this check",
		Remedy: "use notify in hdsd's configuration, or hdsd watch",
	},
	{
		Field:  "envoy.config.core.v3.HealthCheck.always_log_health_check_failures",
		Effect: "no Envoy logs events of this check",
		Remedy: "hdsd describe endpoint shows each checker's latest probe",
	},
	{
		Field:  "envoy.config.core.v3.HealthCheck.always_log_health_check_success",
		Effect: "no Envoy logs events of this check",
		Remedy: "hdsd describe endpoint shows each checker's latest probe",
	},
}

// warnOfLosses reports fields of a cluster that have no effect while hdsd checks it.
func (e *examiner) warnOfLosses(k *catalog.Cluster) {
	if !k.ByEDS() {
		return
	}
	message := proto.CloneOf(k.Source.Config)
	message.LoadAssignment = nil // its fields have their effect
	message.HealthChecks = k.Source.HealthChecks
	for _, lost := range LostFields {
		if path := lost.pathIn(message); path != "" {
			e.warn(k.Source, "%s: %s, since hdsd checks the cluster: %s; %s", path, cmp.Or(lost.Loss, "has no effect"), lost.Effect, lost.Remedy)
		}
	}
}

// pathIn returns the path of the field in a cluster that sets it, or "".
func (l LostField) pathIn(c *clusterv3.Cluster) string {
	if l.except != nil && l.except(c) {
		return ""
	}
	short, everywhere := strings.CutPrefix(string(l.Field), "*.")
	return find(c.ProtoReflect(), "", func(f protoreflect.FieldDescriptor) bool {
		if everywhere {
			return string(f.Name()) == short
		}
		return f.FullName() == l.Field
	})
}

// find returns the path of the first set field of a kind in a message and what is in
// it, extensions included.
func find(m protoreflect.Message, path string, wanted func(protoreflect.FieldDescriptor) bool) (found string) {
	if extension, ok := dynamic.Any(m); ok {
		inner, err := extension.UnmarshalNew()
		if err != nil {
			return "" // an unknown extension
		}
		return find(inner.ProtoReflect(), path, wanted)
	}
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		fieldPath := strings.TrimPrefix(path+"."+string(f.Name()), ".")
		switch {
		case found != "":
			return found
		case !m.Has(f):
		case wanted(f):
			return fieldPath
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			list := m.Get(f).List()
			for j := 0; j < list.Len() && found == ""; j++ {
				found = find(list.Get(j).Message(), fmt.Sprintf("%s[%d]", fieldPath, j), wanted)
			}
		default:
			found = find(m.Get(f).Message(), fieldPath, wanted)
		}
	}
	return found
}
