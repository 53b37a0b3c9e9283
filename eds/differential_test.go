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
	m := messageOf(assignment(name, first, len(statuses)))
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

// TestClientsEndUpAsWithGoControlPlane plays the same histories to this server and to
// go-control-plane's, each with clients of its own. It compares what the clients have at
// the end.
//
// It compares only the end, because of these known differences on the way:
//   - A name that does not exist: this server answers with removed_resources (delta), as
//     the protocol demands, or with an empty assignment (state of the world), which it
//     allows. Envoy waits 15 s for one, and acknowledges no clusters meanwhile. Theirs is
//     silent, so a client that reconnects keeps what was removed meanwhile.
//   - A repeated delta subscription: this server sends the resource again, as the protocol
//     demands; theirs does not.
//   - A removed assignment, state of the world: this server sends it empty. Theirs is
//     silent, so the client keeps it. The comparison leaves out such names.
//   - A removal while the resource is under way to a client that just unsubscribed and
//     subscribes again: this server sends the removal, theirs by delta not always. The
//     comparison leaves this out, too.
//   - A stale state-of-the-world request: this server takes in its names while a response
//     is under way. Theirs ignores it, so a name that is dropped and added again meanwhile
//     is lost. The last change of every resource repairs that.
//   - A refused response: neither server sends it again. The last change brings the
//     resource to the client.
//   - This server splits what theirs sends at once: one response is outstanding, and its
//     size is limited.
//   - LinearCache has no ttl, variants or resource_errors, and does not bound first syncs.
//     The clients here ask for none of these, and are fewer. Tests of their own cover them
//     (TestZoneClientsConverge).
func TestClientsEndUpAsWithGoControlPlane(t *testing.T) {
	for seed := range uint64(rounds(20, 60)) {
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
