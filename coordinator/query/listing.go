package query

import (
	"context"
	"sync"
	"time"

	"hdsd/api"
	"hdsd/health"
	"hdsd/peer/access"
	"hdsd/store"
)

const (
	// listPage is the number of endpoints on a page of a listing.
	listPage = 50

	// catchUpPage is the number of changes examined for a page of later changes.
	catchUpPage = 100

	// pagesKept is the number of pages kept of all listings. A slower reader continues with a
	// listing that begins at its place.
	pagesKept = 400

	// longestRest bounds the pause after a page, as a multiple of the time to make it, while
	// several listings go on.
	longestRest = 4
)

// progress is the progress of a listing: first it lists the endpoints, each as of the place in
// the history where its page was made, then it catches up with later changes, so that all are
// as of one place.
type progress struct {
	begun  bool            // at least one page of endpoints was made
	listed bool            // all of them were
	synced bool            // and the later changes
	after  health.Endpoint // listed up to this one; if begun
	place  store.Place     // all records up to here were shown
	until  store.Place     // place of the latest listed health
}

// start is the key by which listings are shared: their filter and their first place.
type start struct {
	cluster, address string
	filter           health.Filter
	progress
}

// page is some events of a listing, with its progress after them.
type page struct {
	*api.Batch
	progress
}

// listings are the current listings. Watches that begin at about the same time share one: it
// asks the core and the disk once for all of them.
type listings struct {
	step   func(context.Context, *listing) (*page, error) // makes the next page
	making chan struct{}                                  // held while a page is made, and during the rest after it

	mu      sync.Mutex
	waiting int                // number of listings that wait for making
	open    map[start]*listing // listings without a page so far: others may join
	kept    []*listing         // listings with kept pages, oldest page first
}

// listing is one sequence of pages, made as its readers need them.
type listing struct {
	start
	visible access.Clusters // of its readers
	turn    chan struct{}   // held by the reader that has the next page made

	// listings.mu guards these fields.
	pages []*page // the newest ones
	first int     // the number of pages[0]
}

func newListings(step func(context.Context, *listing) (*page, error)) *listings {
	return &listings{step: step, making: make(chan struct{}, 1), open: map[start]*listing{}}
}

// join returns a listing without a page so far. It shows nothing older than the call. Callers
// that may not see all clusters never share one.
func (s *listings) join(start start, visible access.Clusters) *listing {
	if !visible.All() {
		return &listing{start: start, visible: visible, turn: make(chan struct{}, 1)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.open[start]
	if l == nil {
		l = &listing{start: start, visible: visible, turn: make(chan struct{}, 1)}
		s.open[start] = l
	}
	return l
}

// page returns a page, or nil if it is not kept any more.
func (s *listings) page(ctx context.Context, l *listing, number int) (*page, error) {
	if p, made := s.find(l, number); made {
		return p, nil
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p, made := s.find(l, number); made {
		return p, nil
	}
	return s.make(ctx, l)
}

// find returns a page, and whether it was made. It is nil if it is not kept.
func (s *listings) find(l *listing, number int) (*page, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch index := number - l.first; {
	case index < 0:
		return nil, true
	case index < len(l.pages):
		return l.pages[index], true
	}
	return nil, false
}

// make makes the next page of a listing. One is made at a time. While several listings go
// on, there is a rest after each page: they must not have all of the core's time.
func (s *listings) make(ctx context.Context, l *listing) (*page, error) {
	s.wait(1)
	defer s.wait(-1)
	select {
	case s.making <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	if s.open[l.start] == l {
		delete(s.open, l.start)
	}
	pause := min(s.waiting-1, longestRest)
	s.mu.Unlock()
	began := time.Now()
	p, err := s.step(ctx, l)
	if pause == 0 {
		<-s.making
	} else {
		time.AfterFunc(time.Duration(pause)*time.Since(began), func() { <-s.making })
	}
	if err != nil {
		return nil, err
	}
	s.keep(l, p)
	return p, nil
}

func (s *listings) wait(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting += more
}

// keep adds a page to its listing, and drops the oldest one of all if there are too many.
func (s *listings) keep(l *listing, p *page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.pages, l.progress = append(l.pages, p), p.progress
	if s.kept = append(s.kept, l); len(s.kept) > pagesKept {
		s.kept[0].drop(1)
		s.kept = append([]*listing(nil), s.kept[1:]...)
	}
}

// forget drops all pages, when there are no watches any more.
func (s *listings) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.kept {
		l.drop(1)
	}
	s.kept = nil
}

func (l *listing) drop(pages int) {
	l.first += pages
	l.pages = append([]*page(nil), l.pages[pages:]...)
}

// step makes the next page of a listing that is not synced.
func (b *Backend) step(ctx context.Context, l *listing) (*page, error) {
	p := &page{progress: l.progress}
	for {
		var events []*api.Event
		var err error
		if p.listed {
			events, err = b.catchUp(ctx, l, &p.progress)
		} else {
			events, err = b.list(ctx, l, &p.progress)
		}
		if err != nil {
			return nil, err
		}
		if len(events) > 0 {
			p.Batch = &api.Batch{Events: events}
			return p, nil
		}
	}
}

// list returns some of the present endpoints with their recorded health. Later changes build on
// it. The history may have grown since the previous page.
func (b *Backend) list(ctx context.Context, l *listing, p *progress) ([]*api.Event, error) {
	q := api.EndpointQuery{Cluster: l.cluster, Address: l.address, Filter: l.filter, Limit: listPage}
	if p.begun {
		q.After = &p.after
	}
	found, more, err := b.Endpoints(ctx, q)
	if err != nil {
		return nil, err
	}
	keys := make([]health.Endpoint, len(found))
	for i := range found {
		keys[i] = found[i].Endpoint
	}
	held, place, err := b.Store.Latest(keys)
	if err != nil {
		return nil, err
	}
	if !p.begun {
		p.place = place
	}
	p.begun, p.until, p.listed = true, place, !more
	events := make([]*api.Event, len(found))
	for i := range found {
		p.after = found[i].Endpoint
		showRecorded(&found[i], held[i])
		events[i] = &api.Event{Endpoint: &found[i]}
	}
	return events, nil
}

// catchUp shows the changes since the endpoints were listed, so that all are as of one place.
func (b *Backend) catchUp(ctx context.Context, l *listing, p *progress) (events []*api.Event, err error) {
	changes, err := b.Store.After(p.place, catchUpPage)
	if err != nil {
		return nil, err
	}
	wanted := api.WatchQuery{Cluster: l.cluster, Address: l.address, Filter: l.filter}
	var keys []health.Endpoint
	var held []health.Verdict
	place := p.place
	for i := range changes {
		if changes[i].Place > p.until {
			break
		}
		place = changes[i].Place
		if t := &changes[i].Transition; wants(&wanted, l.visible, t) {
			keys = append(keys, t.Endpoint)
			held = append(held, health.Verdict{Status: t.To, Since: t.Time, Reason: t.Reason, Observations: t.Observations})
		}
	}
	var found []api.EndpointHealth
	if len(keys) > 0 {
		if err := b.Core.Ask(ctx, func(s State) { found = explainAll(s, keys) }); err != nil {
			return nil, err
		}
	}
	p.place = place
	for i := range found {
		showRecorded(&found[i], &held[i])
		events = append(events, &api.Event{Endpoint: &found[i]})
	}
	if len(changes) == 0 || changes[len(changes)-1].Place >= p.until {
		p.place, p.synced = p.until, true
		events = append(events, &api.Event{Synced: true, Token: b.Store.Token(p.place)})
	}
	return events, nil
}

// showRecorded replaces an endpoint's present health by the recorded one, if a
// change is not recorded yet.
func showRecorded(e *api.EndpointHealth, held *health.Verdict) {
	switch now := &e.Verdict; {
	case held == nil && now.Since.IsZero():
		return
	case held == nil:
		held = &health.Verdict{Reason: "the first verdict is not recorded yet"}
	case held.Status == now.Status && (now.Since.IsZero() || held.Since.Equal(now.Since)):
		return
	}
	e.Verdict, e.Override, e.Voted = *held, nil, nil
	if e.Published != nil && e.Published.Status == held.Status {
		e.Published = nil
	}
}
