package eds

import (
	"maps"
	"slices"
	"strings"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// elsewhere has the types of xDS that are not served, and where an Envoy's
// configuration says from which server each comes.
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
	// otherType stands for types that are not in elsewhere, where clients could
	// make up any number of them.
	otherType = "other"
	// maxUnserved is how many types that are not served are shown and logged of a
	// stream.
	maxUnserved = 16
)

// notServed says of a type that it is not served, and what to do.
func notServed(typeURL string) string {
	const why = "not served here: hdsd has only clusters and assignments, and leaves this request unanswered, so that an Envoy waits for 15 s; "
	if at := elsewhere[typeURL]; at != "" {
		return why + "in " + at + ", name the server that has it instead of ads"
	}
	return why + "ask the server that has it"
}

// park leaves a request unanswered, since its type is not served: an answer that
// says that there is nothing would remove what the client has from elsewhere.
// Called under the stream's lock.
func (st *stream) park(r *request) {
	typeURL := brief(r.typeURL)
	_, known := st.unserved[typeURL]
	shown := known || len(st.unserved) < maxUnserved
	st.server.recorder.parked(st.nodeID, typeURL, shown)
	if !shown {
		return
	}
	if st.unserved == nil {
		st.unserved = make(map[string]int)
	}
	st.unserved[typeURL] = len(r.names)
}

// unservedClients are the types that a stream asked for in vain. It is called
// under the stream's lock.
func (st *stream) unservedClients() (all []Client) {
	for _, typeURL := range slices.SortedFunc(maps.Keys(st.unserved), strings.Compare) {
		names := st.unserved[typeURL]
		all = append(all, Client{
			ID: st.nodeID, Stream: st.id, TypeURL: typeURL, Delta: st.delta, Connected: st.since,
			Resources: names, Stale: names, LastError: notServed(typeURL),
		})
	}
	return all
}
