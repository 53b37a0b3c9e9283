package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/envoy"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

// AnnotationsPath is the REST path for notes.
const AnnotationsPath = "/v1/annotations"

// EventKind is the kind of an event. Its numbers are those of the stored kinds.
type EventKind = hdsdv1.Event_Kind

// RecordedEvent is a record beside changes of health.
type RecordedEvent struct {
	Time             time.Time
	Kind             EventKind
	Cluster, Address string // empty if the event is not about an endpoint
	Checker          string
	Locality         health.Locality
	Author           string // the author, as claimed
	Identity         string // the author, as verified
	Text             string
}

// RecordedEventQuery narrows a list of events; zero fields do not.
type RecordedEventQuery struct {
	Cluster, Address, Checker string
	Kind                      string // prefix of the kind's name
	Locality                  health.Locality
	Start, End                time.Time // Start is included, End is not
	NewestFirst               bool
	After                     uint64 // place at which the previous page ended
	Limit                     int
}

// ListEvents returns records beside changes of health.
func (s *Service) ListEvents(ctx context.Context, r *hdsdv1.ListEventsRequest) (*hdsdv1.ListEventsResponse, error) {
	limit, err := pageSize(r.GetPageSize())
	if err != nil {
		return nil, err
	}
	query := RecordedEventQuery{
		Cluster: r.GetCluster(), Address: r.GetAddress(), Checker: r.GetChecker(), Kind: r.GetKind(),
		NewestFirst: r.GetNewestFirst(), Limit: limit,
	}
	if query.Start, query.End, err = period(r); err != nil {
		return nil, err
	}
	if err := checkKind(query.Kind); err != nil {
		return nil, err
	}
	filter, err := filterOf(localityOnly{r})
	if err != nil {
		return nil, err
	}
	query.Locality = filter.Locality
	question := fmt.Sprintf("events %q %q %q %q %q %v %v %t", query.Locality, query.Cluster, query.Address, query.Checker, query.Kind, query.Start, query.End, query.NewestFirst)
	if r.GetPageToken() != "" {
		if err := decodeToken(question, r.GetPageToken(), &query.After); err != nil {
			return nil, grpcError(err)
		}
	}
	found, next, err := s.backend.RecordedEvents(ctx, query)
	if err != nil {
		return nil, grpcError(err)
	}
	answer := &hdsdv1.ListEventsResponse{Events: convertList(found, recordedEventMessage)}
	if next > 0 {
		answer.NextPageToken, err = encodeToken(question, next)
	}
	return answer, grpcError(err)
}

// localityOnly is a query with only a locality as filter.
type localityOnly struct{ *hdsdv1.ListEventsRequest }

// GetUnhealthy is part of what filterOf reads.
func (localityOnly) GetUnhealthy() bool { return false }

// checkKind refuses a text that begins no kind.
func checkKind(wanted string) error {
	var names []string
	for kind := range hdsdv1.Event_Kind_name {
		if kind > 0 {
			names = append(names, hdsdv1.Event_Kind(kind).String())
		}
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, wanted) }) {
		return nil
	}
	slices.Sort(names)
	return status.Errorf(codes.InvalidArgument, "kind: %q is not one of %s, nor what several begin with", wanted, strings.Join(names, ", "))
}

func recordedEventMessage(h RecordedEvent) *hdsdv1.Event {
	m := &hdsdv1.Event{
		Time: timeMessage(h.Time), Kind: h.Kind, Cluster: h.Cluster, Address: h.Address, Checker: h.Checker,
		Author: h.Author, Identity: h.Identity, Text: h.Text,
	}
	if h.Locality != (health.Locality{}) {
		m.Locality = envoy.LocalityMessage(h.Locality)
	}
	return m
}

// Annotate adds a note to the events.
func (c *Control) Annotate(ctx context.Context, r *hdsdv1.AnnotateRequest) (*hdsdv1.AnnotateResponse, error) {
	note := RecordedEvent{Kind: hdsdv1.Event_NOTE, Cluster: r.GetCluster()}
	if err := mayChange(c.controller.Clusters(ctx), &health.Endpoint{Cluster: note.Cluster}); err != nil {
		return nil, err
	}
	var err error
	if note.Text, err = oneLine("text", r.GetText(), maxReason); err != nil {
		return nil, err
	}
	if note.Text == "" {
		return nil, status.Error(codes.InvalidArgument, "text: is required: say what to note")
	}
	if note.Author, err = authorOf(ctx, r.GetAuthor()); err != nil {
		return nil, err
	}
	if note.Time, err = moment("time", r.GetTime()); err != nil {
		return nil, err
	}
	now := time.Now()
	if note.Time.After(now.Add(clockSkew)) {
		return nil, status.Errorf(codes.InvalidArgument, "time: %s is in the future, it is %s here: leave it out for now", written(note.Time), written(now))
	}
	if note.Time.IsZero() {
		note.Time = now.UTC()
	}
	noted, err := c.controller.Annotate(ctx, note)
	notDurable, err := durability(err)
	if err != nil {
		return nil, err
	}
	return &hdsdv1.AnnotateResponse{Event: recordedEventMessage(noted), NotDurable: notDurable}, nil
}
