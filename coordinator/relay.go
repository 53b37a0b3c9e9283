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

// planeServers are what serves data planes.
type planeServers struct {
	eds      *eds.Server
	relay    *relay.Server                 // nil: there is none
	files    *fileOut                      // nil without data_planes.eds_directory
	rulesNow atomic.Pointer[catalog.Rules] // the latest
	forecast forecast
}

// forecast remembers which clusters hdsd would check: those that differ in their names only
// are mostly alike.
type forecast struct {
	mu    sync.Mutex
	rules *catalog.Rules // by which the answers are
	known map[alike]bool
}

// alike is what clusters share of which hdsd would check all or none.
type alike struct {
	shape uint64
	class catalog.Class
}

// maxForecasts bounds what is remembered.
const maxForecasts = 1 << 14

// expects reports whether hdsd would check a cluster that passes through the relay.
func (p *planeServers) expects(k *clusterv3.Cluster, shape uint64) bool {
	rules := p.rulesNow.Load()
	of := alike{shape, rules.ClassOf(k.GetName())}
	f := &p.forecast
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rules != rules || len(f.known) >= maxForecasts {
		f.rules, f.known = rules, map[alike]bool{}
	}
	will, known := f.known[of]
	if !known {
		will = rules.Checks(relay.SourceName, k)
		f.known[of] = will
	}
	return will
}

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
		Settle:     func(ctx context.Context) error { return c.core.ask(ctx, nil) },
		Checks:     c.expects,
		TakenOver:  c.takenOver,
		Remembers:  c.remembers,
		Stored:     func(cluster string) bool { return c.core.publisher.healthOf[cluster] },

		Answers:             c.servers.bounds.answers,
		Names:               c.servers.bounds.names,
		MaxMessageBytes:     config.LargestAnswer(limits),
		MaxClusterEndpoints: int(limits.GetMaxClusterEndpoints()),
		MaxEndpoints:        int(limits.GetMaxSourceEndpoints()),
		Log:                 c.log,
		Registerer:          c.registry,
	})
}

// takenOver reports whether data planes need not check a cluster, as far as is known before a
// source has its endpoints.
func (c *Coordinator) takenOver(cluster string) bool {
	_, taken := c.core.publisher.takenOver.Load(cluster)
	return taken
}

// remembers reports whether hdsd may know the health of endpoints of a cluster before a
// source has them: it is stored, or decided for all that come.
func (c *Coordinator) remembers(cluster string) bool {
	p := &c.core.publisher
	return p.healthOf[cluster] || p.overridden.Load() || p.frozen.Load() != nil || c.rulesNow.Load().InitialHealth != health.Unknown
}

// planes is who gets what data planes get.
func (c *Coordinator) planes() resourceServer {
	if c.relay == nil {
		return c.eds
	}
	return both{c.eds, c.relay.Health()}
}

// both gives two the same, in order.
type both [2]resourceServer

// Update implements resourceServer.
func (b both) Update(u publish.Update) {
	for _, one := range b {
		one.Update(u)
	}
}

// SetHealth implements resourceServer.
func (b both) SetHealth(all []publish.Health) {
	for _, one := range b {
		one.SetHealth(all)
	}
}

// SetZoneHealth implements resourceServer.
func (b both) SetZoneHealth(zone health.Locality, set []publish.Health, unset []health.EndpointID) {
	for _, one := range b {
		one.SetZoneHealth(zone, set, unset)
	}
}

// rules makes the rules that clusters are prepared by.
func (c *Coordinator) rules(from *configv1.Config) *catalog.Rules {
	r := catalog.NewRules(from)
	c.rulesNow.Store(r)
	return r
}
