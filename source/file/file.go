package file

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"hdsd/source"
)

// Options say what to read.
type Options struct {
	Name string // of the source
	Path string // of a file, or of a folder whose files are read

	// WatchedDirectory is the folder in which a move of anything tells that
	// the files have changed; empty: moves of the file itself do.
	WatchedDirectory string

	Log zerolog.Logger
}

// Source reads one path. Load, Latest and Run may be called from any goroutine:
// reads come one after the other, so that none overtakes a later one.
type Source struct {
	options Options
	settle  time.Duration // how long to wait for further events
	retry   time.Duration // how long to wait for a folder that went away

	mu   sync.Mutex  // the order of reads
	last *source.Set // last good one
	read sum         // digest of the files that it is of
	sums map[string]sum
}

// New makes a source that has not read anything yet.
func New(options Options) *Source {
	return &Source{options: options, settle: 50 * time.Millisecond, retry: time.Second}
}

// Error says why files could not be read as a whole.
type Error struct{ Problems []source.Problem }

// Error gives the problems in lines.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Load reads the files now. An error is an *Error; it changes nothing of what
// was loaded before.
func (s *Source) Load() (*source.Set, error) {
	set, fatal := s.load()
	if len(fatal) > 0 {
		return nil, &Error{Problems: fatal}
	}
	return set, nil
}

// Latest gives what the files held when they were last read, by Load or by Run,
// as far as they could be; nil where they were not.
func (s *Source) Latest() *source.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// load gives a set, or why there is none.
func (s *Source) load() (*source.Set, []source.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	files, fatal := read(s.options.Path)
	now := digest(files)
	if len(fatal) == 0 && s.last != nil && now == s.read {
		return s.last, nil // as at a start, where Run reads what Load has just read
	}
	found, senseless := parse(files, nil)
	if fatal = append(fatal, senseless...); len(fatal) > 0 {
		sortProblems(fatal)
		return nil, fatal
	}
	clusters, problems := join(s.options.Name, found.resources, false)
	problems = append(found.problems, problems...)
	sortProblems(problems)
	s.read = now
	s.last = &source.Set{Source: s.options.Name, Clusters: s.keep(clusters), Problems: problems}
	return s.last, nil
}

func sortProblems(problems []source.Problem) {
	slices.SortFunc(problems, func(a, b source.Problem) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.String(), b.String())
	})
}
