package xds

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/rs/zerolog"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/rules"
	"hdsd/source"
)

// Options select the server to ask, and the node to be.
type Options struct {
	Name string // of the source

	// Node identifies hdsd in requests. Fields set in As replace Node's.
	Node, As *corev3.Node

	// ConfigSource has an api_config_source without problems for Validate. Its file paths are
	// used as they are.
	ConfigSource *corev3.ConfigSource

	// Snapshot is the path of a file that keeps the last valid resources over a
	// restart; empty: none.
	Snapshot string

	// FirstDeltaResponseIsComplete means that the first response about clusters on each delta
	// stream has all of them. Then hdsd asks without initial_resource_versions, and removes the
	// clusters that this response lacks.
	FirstDeltaResponseIsComplete bool

	// Limits of the server's resources in total; 0: none.
	MaxClusters, MaxEndpoints int

	// MaxClusterEndpoints is the limit of endpoints of one resource; 0: 1,000,000.
	MaxClusterEndpoints int

	// MaxMessageBytes is the size limit of a response, 64 MiB by default.
	MaxMessageBytes int

	Log zerolog.Logger
}

// Source is the clusters of one management server. Any goroutine may call its methods.
type Source struct {
	options  Options
	settings settings
	node     *corev3.Node // in requests
	server   string       // the first server, the place of problems
	dialer   dialer

	changed  chan struct{} // signals that there may be something to deliver
	channels []*channel    // connections to the server

	mu                    sync.Mutex // guards the fields below
	stock                 *stock
	clusters, assignments *table
	secure                map[int]credentials.TransportCredentials // last valid ones, by server
	latest                latest
	delivered             *source.Set     // the last set delivered
	foreign               talk            // about assignments used only by clusters of other sources; not in delta
	wanted                []string        // assignments used by clusters of other sources
	pending               bool            // the server has not answered about some of these
	unasked               map[string]item // assignments of the snapshot that are not in use yet
	updates               int             // counts updates that may have changed the known resources
	restored              time.Time       // the time of the restored snapshot; zero: none
}

// New returns a source that has asked nothing yet. It fails if Validate finds a problem.
func New(options Options) (*Source, error) {
	if problems := Validate("config_source", options.ConfigSource); len(problems) > 0 {
		lines := make([]string, len(problems))
		for i, p := range problems {
			lines[i] = p.Field + ": " + p.Message
		}
		return nil, fmt.Errorf("source %s: %s", options.Name, strings.Join(lines, "; "))
	}
	options.MaxMessageBytes = cmp.Or(options.MaxMessageBytes, 64<<20)
	stock := newStock(&options)
	s := &Source{
		options: options, settings: settingsOf(options.ConfigSource), node: nodeOf(&options), dialer: dial,
		changed: make(chan struct{}, 1), stock: stock,
		secure: make(map[int]credentials.TransportCredentials), latest: newLatest(),
	}
	s.clusters = newTable(rules.Cluster, stock, s.settings.fetchTimeout)
	s.assignments = newTable(rules.Assignment, stock, s.settings.fetchTimeout)
	s.server = s.settings.servers()[0]
	s.clusters.endpoints = s.assignments
	s.clusters.minimum = s.settings.minimumClusters
	for _, k := range []*talk{&s.clusters.talk, &s.assignments.talk, &s.foreign} {
		k.server, k.typeURL = s.server, rules.Assignment
		k.log, k.source = options.Log, options.Name
	}
	s.clusters.talk.typeURL = rules.Cluster
	s.channels = s.newChannels()
	s.delivered = &source.Set{Source: options.Name, Awaited: true}
	return s, nil
}

// Latest returns the set that Run delivered last or is about to deliver. Before that,
// it returns an Awaited set without clusters.
func (s *Source) Latest() *source.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delivered
}

// Run asks until its context ends, and delivers each set that differs from the one
// before, or that ends Pending. The first set comes
//   - when the server has answered about clusters and their endpoints, or
//   - when initial_fetch_timeout has passed (then it is Unread), or
//   - at once if there is a snapshot (then it is Awaited).
//
// Run calls take on the caller's goroutine. Call Run once; it returns nil when its
// context has ended and all its goroutines have.
func (s *Source) Run(ctx context.Context, take func(*source.Set)) error {
	var owned sync.WaitGroup
	defer owned.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.options.Snapshot != "" {
		if err := s.restore(); err != nil {
			s.options.Log.Error().Str("event", "upstream_snapshot_trouble").Str("source", s.options.Name).Err(err).
				Msg("the snapshot of the management server's resources cannot be read")
		}
		owned.Go(func() { (&keeper{Source: s, kept: !s.restored.IsZero()}).run(ctx) })
	}
	for _, c := range s.channels {
		owned.Go(func() { c.run(ctx) })
	}
	newDelivery(s, take).run(ctx)
	return nil
}

// wrapsResources is the feature of a client that takes wrapped resources in the state of the
// world, too.
const wrapsResources = "xds.config.resource-in-sotw"

// nodeOf returns the node for requests.
func nodeOf(o *Options) *corev3.Node {
	node := &corev3.Node{}
	if o.Node != nil {
		proto.Merge(node, o.Node)
	}
	if o.As != nil {
		proto.Merge(node, o.As)
	}
	if !slices.Contains(node.GetClientFeatures(), wrapsResources) {
		node.ClientFeatures = append(node.ClientFeatures, wrapsResources)
	}
	return node
}

// newChannels makes one channel for all types, or one for each, and in the state of the world
// one more for names used only by other sources.
func (s *Source) newChannels() []*channel {
	groups := [][]*table{{s.clusters}, {s.assignments}}
	if s.settings.aggregated {
		groups = [][]*table{{s.clusters, s.assignments}}
	}
	splits := !s.settings.delta
	if splits {
		groups = append(groups, []*table{s.assignments})
	}
	channels := make([]*channel, len(groups))
	for i, tables := range groups {
		part := everyName
		switch {
		case splits && i == len(groups)-1:
			part = foreignNames
		case splits:
			part = ownNames
		}
		c := &channel{
			source: s, tables: tables, scope: part, wake: make(chan struct{}, 1), node: s.node,
			nodeOnce: s.settings.api.GetSetNodeOnFirstMessageOnly(), limiter: newLimiter(s.settings.api.GetRateLimitSettings()),
		}
		c.attempt = c.stream
		if s.settings.rest {
			c.attempt = newPoller(c).run
		}
		channels[i] = c
	}
	return channels
}
