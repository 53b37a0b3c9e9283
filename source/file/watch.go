package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"hdsd/peer/limit"
	"hdsd/source"
)

// Run reads the files again whenever they are moved into place, and delivers each set
// that differs from the one before. The first comes from Latest, if there is one. If a
// later read fails, the set has the last valid clusters and the problem. Run ends with
// its context, or with an error if it cannot begin.
func (s *Source) Run(ctx context.Context, deliver func(*source.Set)) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("source %s: no files can be watched (fs.inotify.max_user_instances may be too low): %w", s.options.Name, err)
	}
	defer watcher.Close()
	r := &runner{Source: s, watcher: watcher, deliver: deliver, pending: stopped(), lost: stopped(), lease: stopped()}
	r.dir, r.wants = s.watched()
	if err := watcher.Add(r.dir); err != nil {
		return fmt.Errorf("source %s: %s cannot be watched: %w", s.options.Name, r.dir, err)
	}
	r.delivered = s.Latest()
	r.good = r.delivered
	// Find changes from before the watch began.
	if err := r.reload(); err != nil {
		return err
	}
	r.loop(ctx)
	return nil
}

// watched returns the folder to watch, and a filter for its events.
func (s *Source) watched() (string, func(fsnotify.Event) bool) {
	path := filepath.Clean(s.options.Path)
	info, err := os.Stat(path)
	switch {
	case s.options.WatchedDirectory != "":
		return filepath.Clean(s.options.WatchedDirectory), movedIn
	case err == nil && info.IsDir():
		return path, changesFolder
	default:
		name := filepath.Base(path)
		return filepath.Dir(path), func(e fsnotify.Event) bool { return movedIn(e) && filepath.Base(e.Name) == name }
	}
}

func movedIn(e fsnotify.Event) bool { return e.Has(fsnotify.Create) }

// changesFolder reports whether an event changes the files of a folder: one came or
// went, or the link to all of them was replaced, as in a Kubernetes volume.
func changesFolder(e fsnotify.Event) bool {
	name := filepath.Base(e.Name)
	return name == "..data" && movedIn(e) ||
		readable(name) && (e.Has(fsnotify.Create) || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename))
}

// runner is the state of one Run. Its goroutine owns it.
type runner struct {
	*Source
	watcher   *fsnotify.Watcher
	deliver   func(*source.Set)
	dir       string
	wants     func(fsnotify.Event) bool
	pending   *time.Timer // set while waiting for further events
	start     time.Time   // time of the first of them
	lost      *time.Timer // set while the folder is away
	lease     *time.Timer // set while a lease has an end
	stale     limit.Pace
	delivered *source.Set
	good      *source.Set      // the last valid one delivered
	fatal     []source.Problem // reasons why the files could not be read
}

func stopped() *time.Timer {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return timer
}

func (r *runner) loop(ctx context.Context) {
	defer r.pending.Stop()
	defer r.lost.Stop()
	defer r.lease.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-r.watcher.Events:
			r.event(event)
		case err := <-r.watcher.Errors:
			// Events may be lost, so read the files again.
			r.options.Log.Warn().Str("event", "source_watch_trouble").Str("source", r.options.Name).Err(err).
				Msg("changes of files may have been missed; they are read again")
			r.schedule()
		case <-r.pending.C:
			r.start = time.Time{}
			_ = r.reload() // a set was delivered before
		case <-r.lost.C:
			r.watchAgain()
		case <-r.lease.C:
			r.hand()
		}
	}
}

func (r *runner) event(event fsnotify.Event) {
	if event.Name == r.dir && (event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename)) {
		_ = r.watcher.Remove(r.dir) // gone already after a removal
		r.lost.Reset(0)
		return
	}
	// A file that is copied instead of moved is still being written.
	if r.wants(event) || event.Has(fsnotify.Write) && !r.start.IsZero() {
		r.schedule()
	}
}

// schedule schedules a read for when events cease, or have continued for long.
func (r *runner) schedule() {
	now := time.Now()
	if r.start.IsZero() {
		r.start = now
	}
	if now.Sub(r.start) < 10*r.settle {
		r.pending.Reset(r.settle)
	}
}

func (r *runner) watchAgain() {
	if err := r.watcher.Add(r.dir); err != nil {
		r.lost.Reset(r.retry)
		return
	}
	r.schedule()
}

// reload reads the files and delivers a new set. It fails if there is nothing to
// deliver.
func (r *runner) reload() error {
	_, r.fatal = r.load()
	if len(r.fatal) > 0 {
		if r.good == nil {
			return &Error{Problems: r.fatal}
		}
		r.options.Log.Error().Str("event", "source_unreadable").Str("source", r.options.Name).
			Int("problems", len(r.fatal)).Err(&Error{Problems: r.fatal[:min(len(r.fatal), problemsLogged)]}).
			Msg("files cannot be read, the last good ones stay")
	}
	r.hand()
	return nil
}

// hand delivers the latest set if it is new, after the end of leases.
func (r *runner) hand() {
	set := r.lapsed()
	if len(r.fatal) > 0 {
		set = &source.Set{Source: set.Source, Clusters: set.Clusters, Problems: slices.Concat(r.fatal, set.Problems), Kept: true}
	}
	if r.delivered != nil && slices.Equal(set.Clusters, r.delivered.Clusters) && slices.Equal(set.Problems, r.delivered.Problems) {
		return
	}
	r.options.Log.Info().Str("event", "source_read").Str("source", r.options.Name).
		Int("clusters", len(set.Clusters)).Int("problems", len(set.Problems)).Msg("files read")
	r.delivered = set
	r.deliver(set)
}

// lapsed ends leases, and returns the last valid set without their endpoints.
func (r *runner) lapsed() *source.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	read := r.now
	ended, next := r.lapse(time.Now())
	if len(ended) > 0 {
		r.logStale(ended)
	}
	r.lease.Stop()
	if !next.IsZero() {
		r.lease.Reset(time.Until(next))
	}
	if len(r.fatal) == 0 || r.good == read {
		r.good = r.now
	}
	return r.good
}

func (r *runner) logStale(names []string) {
	r.stale.Warn(time.Now(), &r.options.Log, "upstream_assignments_stale").Str("source", r.options.Name).
		Int("count", len(names)).Strs("names", names[:min(len(names), problemsLogged)]).
		Msg("no file has been moved into place within the endpoint_stale_after of these assignments: they have no endpoints until one is")
}

// problemsLogged is the number of problems, or names, in one line of the log.
const problemsLogged = 10

// CheckWatchedDirectory returns the reason why a watched_directory cannot be watched, or nil.
// The folder may be empty.
func CheckWatchedDirectory(folder string) error {
	if folder == "" {
		return nil
	}
	info, err := os.Stat(folder)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", folder)
	}
	if err != nil {
		return fmt.Errorf("watched_directory: %w; name the directory that the file is moved into", err)
	}
	return nil
}
