package eds

import (
	"maps"
	"slices"
	"strings"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/publish"
)

// elsewhere lists the xDS types that hdsd does not serve, with the field of Envoy's
// configuration that names the server of each.
var elsewhere = map[string]string{
	resourcev3.ListenerType:                                   "lds_config of dynamic_resources",
	resourcev3.RouteType:                                      "rds of the HTTP connection manager",
	resourcev3.ScopedRouteType:                                "scoped_rds of the HTTP connection manager",
	resourcev3.VirtualHostType:                                "vhds of the route configuration",
	resourcev3.SecretType:                                     "sds_config of the TLS contexts",
	resourcev3.RuntimeType:                                    "rtds_layer of layered_runtime",
	resourcev3.ExtensionConfigType:                            "config_source of config_discovery",
	"type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint": "leds_config of the assignments",
	resourcev3.ThriftRouteType:                                "trds of the Thrift proxy",
	"type.googleapis.com/envoy.extensions.filters.network.generic_proxy.v3.RouteConfiguration": "generic_rds of the generic proxy",
}

const (
	// otherType stands for every type that is not in elsewhere: clients could invent any number
	// of them.
	otherType = "other"
	// maxUnserved bounds the unserved types that are shown and logged for a stream.
	maxUnserved = 16
)

// notServed explains that a type is not served, and the remedy.
func notServed(typeURL string) string {
	const reason = "not served here: hdsd has only clusters and assignments, and does not answer this request, so an Envoy waits for 15 s; "
	if field := elsewhere[typeURL]; field != "" {
		return reason + "in " + field + ", name the server that has it instead of ads"
	}
	return reason + "ask the server that has it"
}

// park leaves a request for an unserved type unanswered. An empty answer would remove resources
// that the client has from elsewhere. It is called under the stream's lock.
func (st *stream) park(r *request) {
	typeURL := brief(r.typeURL)
	_, listed := st.unserved[typeURL]
	shown := listed || len(st.unserved) < maxUnserved
	st.server.recorder.parked(st.nodeID, typeURL, shown)
	if !shown {
		return
	}
	if st.unserved == nil {
		st.unserved = make(map[string]int)
	}
	st.unserved[typeURL] = len(r.names)
}

// unservedClients returns one Client for each type that the stream requested in vain. It is
// called under the stream's lock.
func (st *stream) unservedClients() (clients []publish.Client) {
	for _, typeURL := range slices.SortedFunc(maps.Keys(st.unserved), strings.Compare) {
		names := st.unserved[typeURL]
		clients = append(clients, publish.Client{
			ID: st.nodeID, Stream: st.id, TypeURL: typeURL, Delta: st.delta, Connected: st.start,
			Resources: names, Stale: names, LastError: notServed(typeURL),
		})
	}
	return clients
}
