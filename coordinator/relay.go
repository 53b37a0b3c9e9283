package coordinator

import (
	"context"
	"sync"
	"sync/atomic"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/catalog"
	"hdsd/config"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/publish"
	"hdsd/relay"
)

// planeServers holds the servers of data planes.
type planeServers struct {
	eds         *eds.Server
	relay       *relay.Server // nil without a relay
	files       *fileWriter   // nil without data_planes.eds_directory
	latestRules atomic.Pointer[catalog.Rules]
	forecast    forecast
}

// forecast caches whether hdsd would check a cluster. Most clusters differ in their names only, and share an
// entry.
type forecast struct {
	mu      sync.Mutex
	rules   *catalog.Rules // of the entries
	entries map[forecastKey]bool
}

// forecastKey holds the properties of a cluster that decide whether hdsd checks it.
type forecastKey struct {
	shape uint64
	class catalog.Class
}

// maxForecasts limits the entries.
const maxForecasts = 1 << 14

// expects reports whether hdsd would check a cluster that passes through the relay.
func (p *planeServers) expects(k *clusterv3.Cluster, shape uint64) bool {
	rules := p.latestRules.Load()
	key := forecastKey{shape, rules.ClassOf(k.GetName())}
	f := &p.forecast
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rules != rules || len(f.entries) >= maxForecasts {
		f.rules, f.entries = rules, map[forecastKey]bool{}
	}
	checked, ok := f.entries[key]
	if !ok {
		checked = rules.Checks(relay.SourceName, k)
		f.entries[key] = checked
	}
	return checked
}

// forwards maps the setting relay.forward.
var forwards = map[configv1.Relay_Forward]relay.Forward{
	configv1.Relay_NONE: relay.Nothing, configv1.Relay_CLIENT_CERTIFICATE: relay.ClientCertificate, configv1.Relay_AUTHORIZATION: relay.Authorization,
}

// openRelay makes the relay, if the configuration has one.
func (c *Coordinator) openRelay() {
	r := c.started.GetRelay()
	api := r.GetUpstream().GetApiConfigSource()
	if api == nil {
		return
	}
	limits := c.started.GetLimits()
	c.relay = relay.NewServer(relay.Options{
		Services:   api.GetGrpcServices(),
		Aggregated: api.GetApiType() == corev3.ApiConfigSource_AGGREGATED_GRPC || api.GetApiType() == corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC,
		Health:     r.GetHealth() == configv1.Relay_ON,
		Keep:       r.GetKeep().AsDuration(),
		Forward:    forwards[r.GetForward()],
		Settle:     func(ctx context.Context) error { return c.core.call(ctx, nil) },
		Checks:     c.expects,
		TakenOver:  c.takenOver,
		Remembers:  c.remembers,
		Stored:     func(cluster string) bool { return c.core.publisher.storedHealth[cluster] },

		Answers:             c.servers.bounds.answers,
		Names:               c.servers.bounds.names,
		MaxMessageBytes:     config.LargestAnswer(limits),
		MaxClusterEndpoints: int(limits.GetMaxClusterEndpoints()),
		MaxEndpoints:        int(limits.GetMaxSourceEndpoints()),
		Log:                 c.log,
		Registerer:          c.registry,
	})
}

// takenOver reports whether data planes need not check a cluster. It answers before a source has the endpoints.
func (c *Coordinator) takenOver(cluster string) bool {
	_, taken := c.core.publisher.takenOver.Load(cluster)
	return taken
}

// remembers reports whether hdsd may know the health of endpoints of a cluster before a source has them: from the
// store, or by a rule for all endpoints.
func (c *Coordinator) remembers(cluster string) bool {
	p := &c.core.publisher
	return p.storedHealth[cluster] || p.overridden.Load() || p.freeze.Load() != nil || c.latestRules.Load().InitialHealth != health.Unknown
}

// planes returns the servers that get the published health.
func (c *Coordinator) planes() resourceServer {
	if c.relay == nil {
		return c.eds
	}
	return both{c.eds, c.relay.Health()}
}

// both passes everything to two servers in order.
type both [2]resourceServer

// Update implements resourceServer.
func (b both) Update(u publish.Update) {
	for _, s := range b {
		s.Update(u)
	}
}

// SetHealth implements resourceServer.
func (b both) SetHealth(changes []publish.Health) {
	for _, s := range b {
		s.SetHealth(changes)
	}
}

// SetZoneHealth implements resourceServer.
func (b both) SetZoneHealth(zone health.Locality, set []publish.Health, unset []health.EndpointID) {
	for _, s := range b {
		s.SetZoneHealth(zone, set, unset)
	}
}

// rules makes the rules for preparing clusters.
func (c *Coordinator) rules(conf *configv1.Config) *catalog.Rules {
	r := catalog.NewRules(conf)
	c.latestRules.Store(r)
	return r
}
