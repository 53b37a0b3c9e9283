package xds

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/rs/zerolog"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/envoyrules"
	"hdsd/source"
)

// Options say what to ask, and as whom.
type Options struct {
	Name string // of the source

	// Node is who asks; it is sent with requests.
	Node *corev3.Node

	// ConfigSource has an api_config_source that Validate finds nothing wrong
	// with. Paths of files in it are used as they are.
	ConfigSource *corev3.ConfigSource

	// Snapshot is the path of a file that keeps the last good resources over
	// a restart; empty: none.
	Snapshot string

	// The most that the server may have of all it says; 0: any number.
	MaxClusters, MaxEndpoints int

	// MaxMessageBytes is the largest response taken, 64 MiB by default.
	MaxMessageBytes int

	Log zerolog.Logger
}

// Source is one management server's clusters. Its methods may be called from
// any goroutine.
type Source struct {
	options  Options
	settings settings
	where    string // the first server, which stands for the source in problems
	dialer   dialer

	changed  chan struct{}            // there may be something to hand on
	wake     map[string]chan struct{} // by type: there may be something to ask for
	channels []*channel               // what the server is asked on

	mu                    sync.Mutex // guards what follows
	stock                 *stock
	clusters, assignments *table
	secure                map[int]credentials.TransportCredentials // last good ones, by server
	latest                latest
	said                  *source.Set     // what was handed on last
	wanted                []string        // assignments that clusters of other sources take
	pending               bool            // there is no answer yet about some of these
	unasked               map[string]item // assignments of the snapshot that nobody took yet
	updates               int             // counts what may have changed what is known
	restored              time.Time       // of when the snapshot is that was read; zero: none was
}

// New makes a source that has not asked anything yet. It fails where Validate
// finds something wrong.
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
		options: options, settings: settingsOf(options.ConfigSource), dialer: dial,
		changed: make(chan struct{}, 1), wake: make(map[string]chan struct{}),
		stock: stock, clusters: newTable(envoyrules.Cluster, stock), assignments: newTable(envoyrules.Assignment, stock),
		secure: make(map[int]credentials.TransportCredentials), latest: newLatest(),
	}
	s.where = s.settings.servers()[0]
	s.clusters.endpoints = s.assignments
	s.clusters.minimum = s.settings.minimumClusters
	s.clusters.talk.server, s.assignments.talk.server = s.where, s.where
	s.channels = s.newChannels()
	s.said = &source.Set{Source: options.Name, Awaited: true}
	return s, nil
}

// Latest gives what Run handed on last, or is about to; an Awaited set without
// clusters before that.
func (s *Source) Latest() *source.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said
}

// Run asks until its context ends, and hands on each set that differs from the
// one before, or ends what was Pending. The first comes when the server has answered about clusters and
// their endpoints, or when initial_fetch_timeout has passed (it is Unread then),
// or at once where there is a snapshot (it is Awaited then). take is called on
// the caller's goroutine. Run may be called once; it returns nil when its
// context has ended and everything that it started is gone.
func (s *Source) Run(ctx context.Context, take func(*source.Set)) error {
	var owned sync.WaitGroup
	defer owned.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.options.Snapshot != "" {
		if err := s.restore(); err != nil {
			s.options.Log.Error().Str("event", "upstream_snapshot_trouble").Str("source", s.options.Name).Err(err).
				Msg("what the management server said before the start cannot be read")
		}
		owned.Go(func() { (&keeper{Source: s, kept: !s.restored.IsZero()}).run(ctx) })
	}
	for _, c := range s.channels {
		owned.Go(func() { c.run(ctx) })
	}
	newDelivery(s, take).run(ctx)
	return nil
}

// wrapsResources tells a server that in the state of the world, too, resources
// may come with a name and a time to live of their own.
const wrapsResources = "xds.config.resource-in-sotw"

// newChannels makes what the server is asked on: one for all types, or one each.
func (s *Source) newChannels() []*channel {
	groups := [][]*table{{s.clusters}, {s.assignments}}
	if s.settings.aggregated {
		groups = [][]*table{{s.clusters, s.assignments}}
	}
	node := proto.CloneOf(s.options.Node)
	if node == nil {
		node = &corev3.Node{}
	}
	node.ClientFeatures = append(node.ClientFeatures, wrapsResources)
	all := make([]*channel, len(groups))
	for i, tables := range groups {
		c := &channel{
			source: s, tables: tables, wake: make(chan struct{}, 1), node: node,
			nodeOnce: s.settings.api.GetSetNodeOnFirstMessageOnly(), limit: newBucket(s.settings.api.GetRateLimitSettings()),
		}
		c.attempt = c.stream
		if s.settings.rest {
			c.attempt = newPoller(c).run
		}
		for _, t := range tables {
			s.wake[t.typeURL] = c.wake
		}
		all[i] = c
	}
	return all
}
