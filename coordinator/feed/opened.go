package feed

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

// sources are the open sources of a configuration, in order of precedence.
type sources []*opened

// opened is a source and what it was opened by. It is a file, a management server, or
// what the clients of the relay have.
type opened struct {
	name     string
	from     *corev3.ConfigSource
	node     *corev3.Node // that a management server is told; may be nil
	complete bool         // first_delta_response_is_complete
	file     *file.Source
	upstream *xds.Source
	relay    Reader

	cancel context.CancelFunc // nil before it runs
	ended  chan struct{}
}

// openAll opens the sources of a configuration and reads files once. It fails if
// one cannot be read at all. A source that is open already with the same
// configuration stays, so that its connection and its clusters do.
func (f *Feed) openAll(c *configv1.Config) (sources, error) {
	all := make(sources, 0, len(c.GetSources()))
	for _, from := range c.GetSources() {
		known := f.open.Load().find(from)
		if known != nil && known.upstream != nil {
			all = append(all, known)
			continue
		}
		one, err := f.openOne(from, known)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", from.GetName(), err)
		}
		all = append(all, one)
	}
	if f.relay != nil {
		all = append(all, f.relay)
	}
	return all, nil
}

// openOne opens a source. A file that was open before it reads again.
func (f *Feed) openOne(from *configv1.Source, before *opened) (one *opened, err error) {
	one = &opened{name: from.GetName(), from: from.GetConfigSource(), node: from.GetNode(), complete: from.GetFirstDeltaResponseIsComplete()}
	path, watched := config.PathOf(from)
	if path == "" {
		one.upstream, err = xds.New(xds.Options{
			Name: one.name, Node: f.options.Node, As: one.node, ConfigSource: one.from, Snapshot: f.snapshot(one.name), Log: f.options.Log,
			FirstDeltaResponseIsComplete: one.complete,
			MaxClusters:                  int(f.options.Limits.GetMaxSourceClusters()), MaxEndpoints: int(f.options.Limits.GetMaxSourceEndpoints()),
			MaxClusterEndpoints: int(f.options.Limits.GetMaxClusterEndpoints()), MaxMessageBytes: config.LargestAnswer(f.options.Limits),
		})
		return one, err
	}
	if before != nil {
		one.file = before.file
	} else {
		one.file = file.New(file.Options{
			Name: one.name, Path: path, WatchedDirectory: watched,
			MaxClusterEndpoints: int(f.options.Limits.GetMaxClusterEndpoints()), Log: f.options.Log,
		})
	}
	if err := file.CheckWatchedDirectory(watched); err != nil {
		return nil, err
	}
	_, err = one.file.Load()
	return one, err
}

// snapshot is the file that keeps the resources of a management server over a
// restart. A source's name may be anything, so the file name has its hash.
func (f *Feed) snapshot(name string) string {
	hash := sha256.Sum256([]byte(name))
	return filepath.Join(f.options.Dir, fmt.Sprintf("source-%x.pb", hash[:8]))
}

// removeSnapshots removes the snapshots of management servers that are not
// configured, what was held of such sources, and what a crash left of others.
func (f *Feed) removeSnapshots() {
	all := *f.open.Load()
	found, _ := filepath.Glob(filepath.Join(f.options.Dir, "*source-*.pb*")) // the pattern is valid
	for _, path := range found {
		if slices.ContainsFunc(all, func(one *opened) bool {
			return one.upstream != nil && f.snapshot(one.name) == path || f.heldFile(one.name) == path
		}) {
			continue
		}
		if err := os.Remove(path); err != nil {
			f.options.Log.Error().Str("event", "upstream_snapshot_trouble").Err(err).
				Msg("the snapshot of a source that is no longer configured could not be removed")
		}
	}
}

// find gives the source that is open with a configuration, or nil.
func (s *sources) find(from *configv1.Source) *opened {
	if s == nil {
		return nil
	}
	for _, one := range *s {
		if one.name == from.GetName() && proto.Equal(one.from, from.GetConfigSource()) && proto.Equal(one.node, from.GetNode()) && one.complete == from.GetFirstDeltaResponseIsComplete() {
			return one
		}
	}
	return nil
}

func (o *opened) reader() Reader {
	switch {
	case o.upstream != nil:
		return o.upstream
	case o.relay != nil:
		return o.relay
	}
	return o.file
}

func (s sources) readers() []Reader {
	all := make([]Reader, len(s))
	for i, one := range s {
		all[i] = one.reader()
	}
	return all
}

// run runs each source that does not run yet, until it is stopped.
func (s sources) run(ctx context.Context, take func(Reader, *source.Set), log zerolog.Logger) {
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

// stop ends the sources that are not in next, and waits for them.
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
