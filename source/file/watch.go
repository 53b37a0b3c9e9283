package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"hdsd/source"
)

// Run reads the files again whenever they are moved into place, and hands on
// each set that differs from the one before: first from Latest, if there is one.
// It ends with its context, and with an error where it cannot begin. Where a
// later read fails, the set has the last good clusters and the problem.
func (s *Source) Run(ctx context.Context, deliver func(*source.Set)) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("source %s: no files can be watched (fs.inotify.max_user_instances may be too low): %w", s.options.Name, err)
	}
	defer watcher.Close()
	r := &runner{Source: s, watcher: watcher, deliver: deliver, pending: stopped(), lost: stopped()}
	r.dir, r.wants = s.watched()
	if err := watcher.Add(r.dir); err != nil {
		return fmt.Errorf("source %s: %s cannot be watched: %w", s.options.Name, r.dir, err)
	}
	r.delivered = s.Latest()
	r.good = r.delivered
	// What changed before the watch began is found here.
	if err := r.reload(); err != nil {
		return err
	}
	r.loop(ctx)
	return nil
}

// watched gives the folder to watch, and which of its events matter.
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

// changesFolder tells whether a folder's files are others now: one came or
// went, or, in a Kubernetes volume, the link to all of them was replaced.
func changesFolder(e fsnotify.Event) bool {
	name := filepath.Base(e.Name)
	return name == "..data" && movedIn(e) ||
		readable(name) && (e.Has(fsnotify.Create) || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename))
}

// runner is the state of one Run; owned by its goroutine.
type runner struct {
	*Source
	watcher   *fsnotify.Watcher
	deliver   func(*source.Set)
	dir       string
	wants     func(fsnotify.Event) bool
	pending   *time.Timer // set while events are waited for
	since     time.Time   // when the first of them came
	lost      *time.Timer // set while the folder is away
	delivered *source.Set
	good      *source.Set // the last delivered that could be read
}

func stopped() *time.Timer {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return timer
}

func (r *runner) loop(ctx context.Context) {
	defer r.pending.Stop()
	defer r.lost.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-r.watcher.Events:
			r.event(event)
		case err := <-r.watcher.Errors:
			// Events may be lost, so the files may have changed.
			r.options.Log.Warn().Str("event", "source_watch_trouble").Str("source", r.options.Name).Err(err).
				Msg("changes of files may have been missed; they are read again")
			r.soon()
		case <-r.pending.C:
			r.since = time.Time{}
			_ = r.reload() // something was delivered before
		case <-r.lost.C:
			r.watchAgain()
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
	if r.wants(event) || event.Has(fsnotify.Write) && !r.since.IsZero() {
		r.soon()
	}
}

// soon reads the files when events have ceased, or have gone on for long.
func (r *runner) soon() {
	now := time.Now()
	if r.since.IsZero() {
		r.since = now
	}
	if now.Sub(r.since) < 10*r.settle {
		r.pending.Reset(r.settle)
	}
}

func (r *runner) watchAgain() {
	if err := r.watcher.Add(r.dir); err != nil {
		r.lost.Reset(r.retry)
		return
	}
	r.soon()
}

// reload reads the files and hands on what is new. Its error is that there is
// nothing to hand on.
func (r *runner) reload() error {
	set, fatal := r.load()
	switch {
	case len(fatal) == 0:
		r.good = set
	case r.good == nil:
		return &Error{Problems: fatal}
	default:
		r.options.Log.Error().Str("event", "source_unreadable").Str("source", r.options.Name).
			Int("problems", len(fatal)).Err(&Error{Problems: fatal[:min(len(fatal), problemsLogged)]}).
			Msg("files cannot be read, the last good ones stay")
		set = r.lastGood(fatal)
	}
	if r.delivered != nil && slices.Equal(set.Clusters, r.delivered.Clusters) && slices.Equal(set.Problems, r.delivered.Problems) {
		return nil
	}
	r.options.Log.Info().Str("event", "source_read").Str("source", r.options.Name).
		Int("clusters", len(set.Clusters)).Int("problems", len(set.Problems)).Msg("files read")
	r.delivered = set
	r.deliver(set)
	return nil
}

// problemsLogged is how many problems one line of the log has.
const problemsLogged = 10

// lastGood is the last set that could be read, with what is wrong now.
func (r *runner) lastGood(problems []source.Problem) *source.Set {
	return &source.Set{Source: r.good.Source, Clusters: r.good.Clusters, Problems: slices.Concat(r.good.Problems, problems)}
}

// CheckWatchedDirectory tells why a watched_directory cannot be watched. It may be
// empty.
func CheckWatchedDirectory(folder string) error {
	if folder == "" {
		return nil
	}
	about, err := os.Stat(folder)
	if err == nil && !about.IsDir() {
		err = fmt.Errorf("%s is not a directory", folder)
	}
	if err != nil {
		return fmt.Errorf("watched_directory: %w; name the directory that the file is moved into", err)
	}
	return nil
}
