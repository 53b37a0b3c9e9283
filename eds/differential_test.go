package eds

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/log"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	gcp "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"

	"hdsd/health"
)

// theirs publishes to go-control-plane's LinearCache.
type theirs struct{ cache *cache.LinearCache }

func (o theirs) put(name string, first health.EndpointID, statuses []health.Status) {
	m := assignment(name, first, len(statuses)).Message
	for i, s := range statuses {
		m.GetEndpoints()[0].GetLbEndpoints()[i].HealthStatus = corev3.HealthStatus(s)
	}
	if err := o.cache.UpdateResource(name, m); err != nil {
		panic(err)
	}
}

func (o theirs) remove(name string) {
	if err := o.cache.DeleteResource(name); err != nil {
		panic(err)
	}
}

func newTheirs(ctx context.Context) (theirs, func(grpc.ServiceRegistrar)) {
	c := cache.NewLinearCache(resourcev3.EndpointType, cache.WithLogger(log.NewDefaultLogger()))
	mux := &cache.MuxCache{
		Classify:      func(*cache.Request) string { return resourcev3.EndpointType },
		ClassifyDelta: func(*cache.DeltaRequest) string { return resourcev3.EndpointType },
		Caches:        map[string]cache.Cache{resourcev3.EndpointType: c},
	}
	server := gcp.NewServer(ctx, mux, nil)
	return theirs{c}, func(r grpc.ServiceRegistrar) { discoveryv3.RegisterAggregatedDiscoveryServiceServer(r, server) }
}

// TestClientsEndUpAsWithGoControlPlane plays the same histories to this server
// and to go-control-plane's, each with clients of its own, and compares what
// the clients have at the end.
//
// Only the end is compared, for these known differences on the way:
//   - A name that does not exist: we answer removed_resources (delta), as the
//     protocol asks, or an empty assignment (state of the world), which it allows:
//     Envoy waits 15 s for one, and so long acknowledges no clusters. Theirs is
//     silent, so that a client that comes back keeps what was removed meanwhile.
//   - A repeated delta subscription: we send again, as the protocol demands;
//     theirs does not.
//   - A removed assignment, state of the world: we send it empty; theirs says
//     nothing, so that the client keeps what is no more. Such names are left
//     out of the comparison.
//   - A removal while the resource is under way to a client that just gave it up
//     and takes it up again: ours is told of it, theirs in delta not always.
//     Left out likewise.
//   - A stale state-of-the-world request: we take its list in while a response
//     is under way; theirs ignores it, so that a name dropped and taken up
//     again meanwhile is lost. The last change of every resource heals that.
//   - A refused response: ours is parked, and so is LinearCache's; it is the
//     last change that brings the resource to the client.
//   - One response outstanding and the size cap split what theirs sends at once.
//   - LinearCache has neither ttl nor variants nor resource_errors, and does not
//     bound first syncs: the clients here ask for none, and are fewer. What holds
//     of them is in tests of their own (TestZoneClientsConverge).
func TestClientsEndUpAsWithGoControlPlane(t *testing.T) {
	for seed := range uint64(60) {
		steps := randomSteps(rand.New(rand.NewPCG(seed, 3)), 80)
		inBubble(t, Options{MaxResponseBytes: 400}, func(t *testing.T, b *bench) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cache, register := newTheirs(ctx)
			conn, stop := serve(t, register)
			defer func() {
				conn.Close()
				cancel()
				stop()
			}()
			peer := &bench{t: t, conn: conn}
			delta, state := newDeltaModel(b), newStateModel(b)
			theirDelta, theirState := newDeltaModel(peer), newStateModel(peer)
			w := play(steps, []target{ours{b.server}, cache}, []model{delta, state, theirDelta, theirState})

			for _, values := range []map[string]string{theirDelta.values, theirState.values} {
				maps.DeleteFunc(values, func(name, _ string) bool { return w[name] == nil })
			}
			for _, pair := range [][2]model{{delta, theirDelta}, {state, theirState}} {
				if ours, theirs := fmt.Sprint(pair[0].has()), fmt.Sprint(pair[1].has()); ours != theirs {
					t.Errorf("seed %d, %T: ours %s, theirs %s", seed, pair[0], ours, theirs)
				}
				if err := w.expect(pair[0]); err != nil {
					t.Errorf("seed %d, %T: %v", seed, pair[0], err)
				}
				pair[0].close()
				pair[1].close()
			}
			synctest.Wait()
		})
	}
}
