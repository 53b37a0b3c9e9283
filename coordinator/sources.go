package coordinator

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/rs/zerolog"

	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
	"hdsd/source/file"
)

// sources are the open sources of a configuration, in order of precedence.
type sources struct {
	log   zerolog.Logger
	files []opened
	sets  []*source.Set // what each said first

	cancel context.CancelFunc // nil before run
	owned  sync.WaitGroup
}

// opened is a source and what it was opened as.
type opened struct {
	name, path, watched string
	*file.Source
}

// openSources reads every source once. One that cannot be read as a whole is
// an error. A source that is among those before (nil: none) goes on as it is,
// so that clusters that did not change keep their pointers.
func openSources(c *configv1.Config, before *sources, log zerolog.Logger) (*sources, error) {
	s := &sources{log: log}
	for _, from := range c.GetSources() {
		path, watched := config.PathOf(from)
		one := opened{from.GetName(), path, watched, before.find(from.GetName(), path, watched)}
		if one.Source == nil {
			one.Source = file.New(file.Options{Name: one.name, Path: path, WatchedDirectory: watched, Log: log})
		}
		if err := watchable(watched); err != nil {
			return nil, fmt.Errorf("source %s: %w", one.name, err)
		}
		set, err := one.Load()
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", one.name, err)
		}
		s.files = append(s.files, one)
		s.sets = append(s.sets, set)
	}
	return s, nil
}

// watchable tells why the moves in a folder cannot be watched.
func watchable(folder string) error {
	if folder == "" {
		return nil
	}
	about, err := os.Stat(folder)
	if err == nil && !about.IsDir() {
		err = fmt.Errorf("%s is no folder", folder)
	}
	if err != nil {
		return fmt.Errorf("watched_directory: %w; name the folder that the file is moved into", err)
	}
	return nil
}

func (s *sources) find(name, path, watched string) *file.Source {
	if s == nil {
		return nil
	}
	for _, f := range s.files {
		if f.name == name && f.path == path && f.watched == watched {
			return f.Source
		}
	}
	return nil
}

// run watches every source until stop.
func (s *sources) run(ctx context.Context, take func(*source.Set)) {
	ctx, s.cancel = context.WithCancel(ctx)
	for _, f := range s.files {
		s.owned.Go(func() {
			if err := f.Run(ctx, take); err != nil {
				s.log.Error().Str("event", "source_not_watched").Err(err).Msg("changes of this source are not seen until the next reload (SIGHUP)")
			}
		})
	}
}

func (s *sources) stop() {
	if s.cancel != nil {
		s.cancel()
	}
	s.owned.Wait()
}
