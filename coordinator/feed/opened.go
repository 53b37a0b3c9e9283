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

// opened is an open source with its configuration. It is a file, a management server, or the
// resources of the relay's clients.
type opened struct {
	name     string
	src      *corev3.ConfigSource
	node     *corev3.Node // shown to a management server; may be nil
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
	list := make(sources, 0, len(c.GetSources()))
	for _, src := range c.GetSources() {
		known := f.open.Load().find(src)
		if known != nil && known.upstream != nil {
			list = append(list, known)
			continue
		}
		o, err := f.openOne(src, known)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", src.GetName(), err)
		}
		list = append(list, o)
	}
	if f.relay != nil {
		list = append(list, f.relay)
	}
	return list, nil
}

// openOne opens a source. A file that was open before it reads again.
func (f *Feed) openOne(src *configv1.Source, previous *opened) (o *opened, err error) {
	o = &opened{name: src.GetName(), src: src.GetConfigSource(), node: src.GetNode(), complete: src.GetFirstDeltaResponseIsComplete()}
	path, watched := config.PathOf(src)
	if path == "" {
		o.upstream, err = xds.New(xds.Options{
			Name: o.name, Node: f.options.Node, As: o.node, ConfigSource: o.src, Snapshot: f.snapshot(o.name), Log: f.options.Log,
			FirstDeltaResponseIsComplete: o.complete,
			MaxClusters:                  int(f.options.Limits.GetMaxSourceClusters()), MaxEndpoints: int(f.options.Limits.GetMaxSourceEndpoints()),
			MaxClusterEndpoints: int(f.options.Limits.GetMaxClusterEndpoints()), MaxMessageBytes: config.LargestAnswer(f.options.Limits),
		})
		return o, err
	}
	if previous != nil {
		o.file = previous.file
	} else {
		o.file = file.New(file.Options{
			Name: o.name, Path: path, WatchedDirectory: watched,
			MaxClusterEndpoints: int(f.options.Limits.GetMaxClusterEndpoints()), Log: f.options.Log,
		})
	}
	if err := file.CheckWatchedDirectory(watched); err != nil {
		return nil, err
	}
	_, err = o.file.Load()
	return o, err
}

// snapshot is the file that keeps the resources of a management server over a
// restart. A source's name may be anything, so the file name has its hash.
func (f *Feed) snapshot(name string) string {
	hash := sha256.Sum256([]byte(name))
	return filepath.Join(f.options.Dir, fmt.Sprintf("source-%x.pb", hash[:8]))
}

// removeSnapshots removes the snapshots of management servers that are not configured, their
// held parts, and remains of a crash.
func (f *Feed) removeSnapshots() {
	list := *f.open.Load()
	found, _ := filepath.Glob(filepath.Join(f.options.Dir, "*source-*.pb*")) // the pattern is valid
	for _, path := range found {
		if slices.ContainsFunc(list, func(o *opened) bool {
			return o.upstream != nil && f.snapshot(o.name) == path || f.heldFile(o.name) == path
		}) {
			continue
		}
		if err := os.Remove(path); err != nil {
			f.options.Log.Error().Str("event", "upstream_snapshot_trouble").Err(err).
				Msg("the snapshot of a source that is no longer configured could not be removed")
		}
	}
}

// find returns the open source with a configuration, or nil.
func (s *sources) find(src *configv1.Source) *opened {
	if s == nil {
		return nil
	}
	for _, o := range *s {
		if o.name == src.GetName() && proto.Equal(o.src, src.GetConfigSource()) && proto.Equal(o.node, src.GetNode()) && o.complete == src.GetFirstDeltaResponseIsComplete() {
			return o
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
	list := make([]Reader, len(s))
	for i, o := range s {
		list[i] = o.reader()
	}
	return list
}

// run runs each source that does not run yet, until it is stopped.
func (s sources) run(ctx context.Context, deliver func(Reader, *source.Set), log zerolog.Logger) {
	for _, o := range s {
		if o.cancel != nil {
			continue
		}
		running, cancel := context.WithCancel(ctx)
		o.cancel, o.ended = cancel, make(chan struct{})
		go func() {
			defer close(o.ended)
			if err := o.reader().Run(running, func(set *source.Set) { deliver(o.reader(), set) }); err != nil {
				log.Error().Str("event", "source_not_watched").Err(err).Msg("changes of this source are not seen until the next reload (SIGHUP)")
			}
		}()
	}
}

// stop ends the sources that are not in next, and waits for them.
func (s sources) stop(next sources) {
	for _, o := range s {
		if o.cancel != nil && !slices.Contains(next, o) {
			o.cancel()
		}
	}
	for _, o := range s {
		if o.cancel != nil && !slices.Contains(next, o) {
			<-o.ended
		}
	}
}
