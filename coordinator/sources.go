package coordinator

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/proto"

	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
	"hdsd/source/file"
	"hdsd/source/xds"
)

// openings are what every source is opened with.
type openings struct {
	node   *corev3.Node // hdsd, as upstreams know it
	folder string       // for what is to outlive a restart
	limits *configv1.Limits
	log    zerolog.Logger
}

// sources are the open sources of a configuration, in order of precedence.
type sources []*opened

// opened is a source and what it was opened as. It is of one of two kinds.
type opened struct {
	name     string
	from     *corev3.ConfigSource
	file     *file.Source
	upstream *xds.Source

	cancel context.CancelFunc // nil before it runs
	ended  chan struct{}
}

// open opens every source of a configuration, and reads each once that can be
// read at once; what it read is its latest. One that cannot be read as a whole is an error. A source that is
// among those before goes on as it is, so that clusters that did not change
// keep their pointers and a connection stays.
func (o *openings) open(c *configv1.Config, before sources) (sources, error) {
	all := make(sources, 0, len(c.GetSources()))
	for _, from := range c.GetSources() {
		known := before.find(from)
		if known != nil && known.upstream != nil {
			all = append(all, known)
			continue
		}
		one, err := o.openOne(from, known)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", from.GetName(), err)
		}
		all = append(all, one)
	}
	return all, nil
}

// openOne opens a source, or a file anew that was open before.
func (o *openings) openOne(from *configv1.Source, before *opened) (one *opened, err error) {
	one = &opened{name: from.GetName(), from: from.GetConfigSource()}
	path, watched := config.PathOf(from)
	if path == "" {
		one.upstream, err = xds.New(xds.Options{
			Name: one.name, Node: o.node, ConfigSource: one.from, Snapshot: o.snapshot(one.name), Log: o.log,
			MaxClusters: int(o.limits.GetMaxSourceClusters()), MaxEndpoints: int(o.limits.GetMaxSourceEndpoints()),
			MaxMessageBytes: config.LargestAnswer(o.limits),
		})
		return one, err
	}
	if before != nil {
		one.file = before.file
	} else {
		one.file = file.New(file.Options{Name: one.name, Path: path, WatchedDirectory: watched, Log: o.log})
	}
	if err := file.CheckWatchedDirectory(watched); err != nil {
		return nil, err
	}
	_, err = one.file.Load()
	return one, err
}

// snapshot is where the resources of an upstream are kept over a restart. The
// name may be anything, so the file has a hash of it.
func (o *openings) snapshot(name string) string {
	hash := sha256.Sum256([]byte(name))
	return filepath.Join(o.folder, fmt.Sprintf("source-%x.pb", hash[:8]))
}

// forget removes the snapshots of upstreams that are no more, and what a crash
// left of others.
func (o *openings) forget(all sources) {
	found, _ := filepath.Glob(filepath.Join(o.folder, "*source-*.pb*")) // the pattern is good
	for _, path := range found {
		if !slices.ContainsFunc(all, func(one *opened) bool { return one.upstream != nil && o.snapshot(one.name) == path }) {
			if err := os.Remove(path); err != nil {
				o.log.Error().Str("event", "upstream_snapshot_trouble").Err(err).Msg("what a source that is no more said could not be removed")
			}
		}
	}
}

func (s sources) find(from *configv1.Source) *opened {
	for _, one := range s {
		if one.name == from.GetName() && proto.Equal(one.from, from.GetConfigSource()) {
			return one
		}
	}
	return nil
}

// reader is the source itself.
func (o *opened) reader() reader {
	if o.upstream != nil {
		return o.upstream
	}
	return o.file
}

// readers are those of all sources.
func (s sources) readers() []reader {
	all := make([]reader, len(s))
	for i, one := range s {
		all[i] = one.reader()
	}
	return all
}

// run follows every source that is not followed yet, until it is stopped.
func (s sources) run(ctx context.Context, take func(reader, *source.Set), log zerolog.Logger) {
	for _, one := range s {
		if one.cancel != nil {
			continue
		}
		running, cancel := context.WithCancel(ctx)
		one.cancel, one.ended = cancel, make(chan struct{})
		go func() {
			defer close(one.ended)
			if err := one.reader().Run(running, func(set *source.Set) { take(one.reader(), set) }); err != nil {
				log.Error().Str("event", "source_not_watched").Err(err).Msg("changes of this source are not seen until the next reload (SIGHUP)")
			}
		}()
	}
}

// stop ends those that do not go on in next, and waits for them.
func (s sources) stop(next sources) {
	for _, one := range s {
		if one.cancel != nil && !slices.Contains(next, one) {
			one.cancel()
		}
	}
	for _, one := range s {
		if one.cancel != nil && !slices.Contains(next, one) {
			<-one.ended
		}
	}
}

// follow takes what the sources say from now on.
func (c *Coordinator) follow() {
	c.sources.run(c.running, func(by reader, set *source.Set) {
		c.intake.take(by, set)
		c.awaited.hear(set)
	}, c.log)
	c.awaited.expect(c.sources)
}
