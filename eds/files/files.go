package files

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
)

// Options are the settings of a Keeper.
type Options struct {
	// Folder holds the files. It is created if missing.
	Folder string
	// Identifier is the coordinator's. Its files contain it, so that it recognizes them,
	// and it is the node id of the subscription.
	Identifier string
	// Server serves the assignments, by the delta endpoint discovery service.
	Server  grpc.ClientConnInterface
	Log     zerolog.Logger
	Metrics prometheus.Registerer // nil: they are not exported
}

// Keeper keeps the files up to date.
type Keeper struct {
	Options
	folder  *folder
	client  endpointservice.EndpointDiscoveryServiceClient
	written prometheus.Counter
	count   prometheus.Gauge
	lagging prometheus.Gauge
	failing bool
}

// retry is the pause after a failure.
const retry = time.Second

// Open reads the files of a folder. An error is the reason why files cannot be kept in it.
func Open(o Options) (*Keeper, error) {
	found, err := openFolder(o.Folder, o.Identifier)
	if err != nil {
		return nil, err
	}
	factory := promauto.With(o.Metrics)
	k := &Keeper{
		Options: o, folder: found, client: endpointservice.NewEndpointDiscoveryServiceClient(o.Server),
		written: factory.NewCounter(prometheus.CounterOpts{Name: "hdsd_files_written_total", Help: "Files of assignments written since the start."}),
		count:   factory.NewGauge(prometheus.GaugeOpts{Name: "hdsd_files", Help: "Files of assignments on disk."}),
		lagging: factory.NewGauge(prometheus.GaugeOpts{Name: "hdsd_files_behind", Help: "1 while files cannot be written, so that they are not up to date."}),
	}
	k.count.Set(float64(len(found.versions)))
	return k, nil
}

// Run keeps the files up to date until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := k.subscribe(ctx)
		if ctx.Err() != nil {
			return
		}
		k.fail(err)
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
		k.folder.forgetMissing()
	}
}

// subscribe subscribes to all assignments, and writes them until an error. The server does not
// repeat versions on disk.
func (k *Keeper) subscribe(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := k.client.DeltaEndpoints(ctx, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	request := &discoveryv3.DeltaDiscoveryRequest{
		Node: &corev3.Node{Id: k.Identifier, UserAgentName: "hdsd files"}, TypeUrl: resourcev3.EndpointType,
		ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: k.folder.versions,
	}
	for {
		if err := stream.Send(request); err != nil {
			_, err = stream.Recv() // returns the reason
			return fmt.Errorf("subscribe: %w", err)
		}
		response, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("subscribe: %w", err)
		}
		if err := k.apply(response); err != nil {
			return err
		}
		k.recover()
		request = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResponseNonce: response.GetNonce()}
	}
}

// apply writes and removes files. After an error, it continues with the others, and returns the
// first error.
func (k *Keeper) apply(m *discoveryv3.DeltaDiscoveryResponse) error {
	defer func() { k.count.Set(float64(len(k.folder.versions))) }()
	var first error
	for _, r := range m.GetResources() {
		if err := k.folder.put(r); err != nil {
			first = cmp.Or(first, err)
			continue
		}
		k.written.Inc()
	}
	for _, name := range m.GetRemovedResources() {
		first = cmp.Or(first, k.folder.remove(name))
	}
	return first
}

// fail logs, once, that the files are behind.
func (k *Keeper) fail(err error) {
	k.lagging.Set(1)
	if !k.failing {
		k.failing = true
		k.Log.Error().Str("event", "files_behind").Str("folder", k.Folder).Err(err).Msg("the files of assignments are not up to date; hdsd retries every second")
	}
}

// recover logs, once, that the files are up to date again.
func (k *Keeper) recover() {
	k.lagging.Set(0)
	if k.failing {
		k.failing = false
		k.Log.Info().Str("event", "files_current").Str("folder", k.Folder).Msg("the files of assignments are up to date again")
	}
}
