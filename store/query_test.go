package store

import (
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/health"
)

func TestQueries(t *testing.T) {
	s := open(t, t.TempDir())
	here, there := endpoint("web", "a", "10.0.0.1:80"), endpoint("web", "b", "10.0.0.1:80")
	other, pay := endpoint("web", "a", "10.0.0.2:80"), endpoint("pay", "a", "10.0.0.1:80")
	var all []health.Transition
	for i, e := range []health.Endpoint{here, there, other, pay, pay, other, there, here} {
		all = append(all, flip(e, i))
	}
	s.Append(all)
	flush(t, s)
	var unhealthy []int
	for i := range all {
		if !all[i].To.Up() {
			unhealthy = append([]int{i}, unhealthy...)
		}
	}
	at := func(n int) time.Time { return day.Add(time.Duration(n) * time.Second) }
	for name, c := range map[string]struct {
		query Query
		want  []int
	}{
		"all":                      {Query{}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		"newest first":             {Query{NewestFirst: true}, []int{7, 6, 5, 4, 3, 2, 1, 0}},
		"cluster":                  {Query{Cluster: "web"}, []int{0, 1, 2, 5, 6, 7}},
		"cluster, newest first":    {Query{Cluster: "pay", NewestFirst: true}, []int{4, 3}},
		"address in all clusters":  {Query{Address: "10.0.0.1:80"}, []int{0, 1, 3, 4, 6, 7}},
		"same, newest first":       {Query{Address: "10.0.0.1:80", NewestFirst: true}, []int{7, 6, 4, 3, 1, 0}},
		"cluster and address":      {Query{Cluster: "web", Address: "10.0.0.1:80"}, []int{0, 1, 6, 7}},
		"start included, end not":  {Query{Start: at(2), End: at(5)}, []int{2, 3, 4}},
		"time and cluster":         {Query{Start: at(2), End: at(7), Cluster: "web", NewestFirst: true}, []int{6, 5, 2}},
		"time and address":         {Query{Start: at(1), End: at(7), Address: "10.0.0.1:80"}, []int{1, 3, 4, 6}},
		"nothing in that time":     {Query{Start: at(100)}, nil},
		"end before start":         {Query{Start: at(5), End: at(2)}, nil},
		"unknown cluster":          {Query{Cluster: "we"}, nil},
		"checker":                  {Query{Checker: "checker-1"}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		"unknown checker":          {Query{Checker: "checker-9", NewestFirst: true}, nil},
		"unknown address":          {Query{Address: "10.0.0.1:8"}, nil},
		"locality":                 {Query{Filter: health.Filter{Locality: health.Locality{Zone: "b"}}}, []int{1, 6}},
		"unhealthy":                {Query{Filter: health.Filter{Unhealthy: true}, NewestFirst: true}, unhealthy},
		"address of other cluster": {Query{Cluster: "pay", Address: "10.0.0.2:80"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var want []health.Transition
			for _, i := range c.want {
				want = append(want, all[i])
			}
			for limit := range 4 {
				c.query.Limit = limit // 0 is the default
				if diff := cmp.Diff(want, queryAll(t, s, c.query)); diff != "" {
					t.Errorf("limit %d: %s", limit, diff)
				}
			}
		})
	}
}

func TestLimits(t *testing.T) {
	s := open(t, t.TempDir())
	s.Append(flips(largestLimit + 1))
	flush(t, s)
	for limit, want := range map[int]int{0: defaultLimit, -1: defaultLimit, 7: 7, 1 << 40: largestLimit} {
		page, next, err := s.Transitions(Query{Limit: limit})
		if len(page) != want || next == "" || err != nil {
			t.Errorf("limit %d: %d transitions, %q, %v", limit, len(page), next, err)
		}
	}
}

func TestTokens(t *testing.T) {
	s := open(t, t.TempDir())
	s.Append(flips(30))
	flush(t, s)
	q := Query{Cluster: "web-1", Limit: 2}
	_, token, err := s.Transitions(q)
	if err != nil || token == "" {
		t.Fatal(token, err)
	}
	q.Token, q.Limit = token, 5
	if _, _, err := s.Transitions(q); err != nil {
		t.Error("another limit:", err)
	}
	for name, bad := range map[string]Query{
		"another cluster": {Cluster: "web-2", Token: token},
		"no cluster":      {Token: token},
		"an address":      {Cluster: "web-1", Address: "10.0.0.1:80", Token: token},
		"a start":         {Cluster: "web-1", Start: day, Token: token},
		"an end":          {Cluster: "web-1", End: day.AddDate(1, 0, 0), Token: token},
		"other direction": {Cluster: "web-1", NewestFirst: true, Token: token},
		"cut off":         {Cluster: "web-1", Token: token[:len(token)-1]},
		"longer":          {Cluster: "web-1", Token: token + "A"},
		"not base64":      {Cluster: "web-1", Token: "+" + token[1:]},
		"zeros":           {Cluster: "web-1", Token: base64.RawURLEncoding.EncodeToString(make([]byte, tokenSize))},
	} {
		if _, _, err := s.Transitions(bad); !errors.Is(err, ErrBadToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTokensAreStable: transitions that come or go between two pages neither repeat nor
// hide others.
func TestTokensAreStable(t *testing.T) {
	var now wall
	now.set(day)
	s := open(t, t.TempDir(), now.keep)
	s.Append(flips(10))
	flush(t, s)
	oldest, forward, _ := s.Transitions(Query{Limit: 4})
	newest, backward, _ := s.Transitions(Query{Limit: 4, NewestFirst: true})
	s.Append([]health.Transition{flip(endpoint("web-9", "a", "x"), 11)})
	flush(t, s)
	now.set(day.Add(time.Hour + 6*time.Second))
	prune(t, s)
	oldest = append(oldest, queryAll(t, s, Query{Token: forward})...)
	newest = append(newest, queryAll(t, s, Query{Token: backward, NewestFirst: true})...)
	var got []string
	for _, tr := range oldest {
		got = append(got, tr.Reason)
	}
	if len(oldest) != 4+4+1 { // 4 and 5 are pruned, 11 is new
		t.Errorf("oldest first: %q", got)
	}
	if len(newest) != 4 {
		t.Errorf("newest first: %d transitions", len(newest))
	}
}
