package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/health"
)

// follow reads what was recorded behind a place.
func readAfter(t *testing.T, s *Store, place Place, limit int) (found []health.Transition, end Place) {
	t.Helper()
	for {
		some, err := s.After(place, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(some) == 0 {
			return found, place
		}
		for _, r := range some {
			found, place = append(found, r.Transition), r.Place
		}
	}
}

// TestAfter resumes at each place, also after a restart.
func TestAfter(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, begin, err := s.Latest(nil)
	if begin != 0 || err != nil {
		t.Fatal(begin, err)
	}
	tokens, all := []string{s.Token(begin)}, flips(25)
	all[20].Time = day // the clock jumps back
	for i := 0; i < len(all); i += 5 {
		s.Append(all[i : i+5])
		flush(t, s)
		_, place, err := s.Latest(nil)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, s.Token(place))
		if i == 10 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, dir)
		}
	}
	for i, token := range tokens {
		place, err := s.Place(token)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := readAfter(t, s, place, 3)
		want := all[5*i:]
		if len(want) == 0 {
			want = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("from place %d: %s", i, diff)
		}
	}
	other := open(t, t.TempDir(), func(o *Options) { o.now = func() time.Time { return day.Add(1) } })
	other.Append(all)
	flush(t, other)
	for name, bad := range map[string]string{
		"another history's": other.Token(Place(nanos(day))), "cut off": tokens[1][1:], "empty": "", "changed": "A" + tokens[1][1:],
		"what is to come": s.Token(Place(nanos(day.AddDate(1, 0, 0)))),
	} {
		if _, err := s.Place(bad); !errors.Is(err, ErrBadToken) {
			t.Errorf("%s token: %v", name, err)
		}
	}
}

func TestLatestIsOfItsPlace(t *testing.T) {
	s := open(t, t.TempDir())
	known, unknown := endpoint("web", "a", "x"), endpoint("web", "a", "y")
	s.Append([]health.Transition{flip(known, 0), flip(known, 1)})
	flush(t, s)
	held, place, err := s.Latest([]health.Endpoint{unknown, known})
	last := flip(known, 1)
	if diff := cmp.Diff([]*health.Verdict{nil, new(verdict(&last))}, held); err != nil || diff != "" || place != Place(nanos(last.Time)) {
		t.Errorf("%s, place %d, %v", diff, place, err)
	}
}

func TestAfterWhatIsNoLongerKept(t *testing.T) {
	var now wall
	now.set(day)
	s := open(t, t.TempDir(), now.keep)
	s.Append(flips(20))
	flush(t, s)
	place := func(n int) Place { return Place(nanos(day) + uint64(n)*1e9) }
	now.set(day.Add(time.Hour + 10*time.Second))
	prune(t, s)
	for n, want := range map[int]error{-1: ErrTooOld, 0: ErrTooOld, 8: ErrTooOld, 9: nil, 10: nil, 15: nil, 19: nil} {
		if _, err := s.After(place(n), 5); !errors.Is(err, want) {
			t.Errorf("behind transition %d: %v, want %v", n, err, want)
		}
	}
}

// TestCommittedSignalsEachCommit: whoever gets the channel, reads and waits misses
// nothing.
func TestCommittedSignalsEachCommit(t *testing.T) {
	s := open(t, t.TempDir())
	const count = 200
	done := make(chan error, 1)
	go func() {
		var place Place
		for seen := 0; seen < count; {
			more := s.Committed()
			some, err := s.After(place, 7)
			if err != nil {
				done <- err
				return
			}
			for _, r := range some {
				if want := fmt.Sprintf("%d", seen); r.Transition.Reason != want {
					done <- fmt.Errorf("transition %q where %s is next", r.Transition.Reason, want)
					return
				}
				seen, place = seen+1, r.Place
			}
			if len(some) == 0 {
				<-more
			}
		}
		done <- nil
	}()
	for i := range count {
		tr := flip(endpoint("web", "a", "x"), i)
		tr.Reason = fmt.Sprint(i)
		s.Append([]health.Transition{tr})
		if i%10 == 0 {
			flush(t, s)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	closed := s.Committed()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-closed
}
