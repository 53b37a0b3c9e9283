package file

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"hdsd/source"
)

// Options select the files to read.
type Options struct {
	Name string // of the source
	Path string // of a file, or of a folder

	// WatchedDirectory is a folder: anything moved in it means that the files have
	// changed. If empty, only moves of the file itself do.
	WatchedDirectory string

	// MaxClusterEndpoints is the limit of endpoints of one cluster; 0: none.
	MaxClusterEndpoints int

	Log zerolog.Logger
}

// Source reads one path. Any goroutine may call Load, Latest and Run: reads run one
// after the other, so none overtakes a later one.
type Source struct {
	options Options
	settle  time.Duration // pause for further events
	retry   time.Duration // pause after the folder went away

	mu   sync.Mutex  // the order of reads
	last *source.Set // last valid one
	read sum         // digest of the files it was read from
	sums map[string]sum
	ends map[string]time.Time // by cluster: end of its assignment's lease
	now  *source.Set          // last, without endpoints whose lease has ended
}

// New returns a source that has read nothing yet.
func New(options Options) *Source {
	return &Source{options: options, settle: 50 * time.Millisecond, retry: time.Second}
}

// Error lists the reasons why files cannot be read as a whole.
type Error struct{ Problems []source.Problem }

// Error lists the problems, one a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Load reads the files. On failure, the error is an *Error, and the previous set stays.
func (s *Source) Load() (*source.Set, error) {
	set, fatal := s.load()
	if len(fatal) > 0 {
		return nil, &Error{Problems: fatal}
	}
	return set, nil
}

// Latest returns the set of the last successful read, by Load or Run, or nil before it. It has
// no endpoints whose lease was over when Run last looked.
func (s *Source) Latest() *source.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// load returns a set, or the reasons why there is none.
func (s *Source) load() (*source.Set, []source.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	files, fatal := read(s.options.Path)
	now := digest(files)
	if len(fatal) == 0 && s.last != nil && now == s.read {
		s.renew(time.Now())
		return s.now, nil // as at a start, when Run reads the files again after Load
	}
	found, senseless := parse(files, nil, s.options.MaxClusterEndpoints)
	if fatal = append(fatal, senseless...); len(fatal) > 0 {
		sortProblems(fatal)
		return nil, fatal
	}
	clusters, problems := join(s.options.Name, found.resources, false)
	problems = append(found.problems, problems...)
	sortProblems(problems)
	s.read = now
	s.last = &source.Set{Source: s.options.Name, Clusters: s.keep(clusters), Problems: problems}
	s.renew(time.Now())
	return s.now, nil
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
