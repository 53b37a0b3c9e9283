package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	storev1 "hdsd/gen/hdsd/store/v1"
	hdsdv1 "hdsd/gen/hdsd/v1"
)

// RecordedEvents implements api.Backend: five, a page of two at a time.
func (f *fleet) RecordedEvents(_ context.Context, q api.RecordedEventQuery) (found []api.RecordedEvent, next uint64, err error) {
	for n := q.After + 1; n <= 5; n++ {
		if len(found) == q.Limit {
			return found, n - 1, nil
		}
		found = append(found, api.RecordedEvent{Time: noon, Kind: hdsdv1.Event_NOTE, Text: fmt.Sprint(n)})
	}
	return found, 0, nil
}

// TestEventsArePaged, and a token fits its own question only.
func TestEventsArePaged(t *testing.T) {
	service := api.NewService(&fleet{})
	seen := ""
	request := &hdsdv1.ListEventsRequest{PageSize: 2, Kind: "NO"}
	for {
		answer, err := service.ListEvents(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range answer.GetEvents() {
			seen += e.GetText()
		}
		if answer.GetNextPageToken() == "" {
			break
		}
		request.PageToken = answer.GetNextPageToken()
		for _, other := range []*hdsdv1.ListEventsRequest{{}, {Kind: "NOTE"}, {Kind: "NO", NewestFirst: true}, {Kind: "NO", Checker: "x"}} {
			other.PageToken = request.GetPageToken()
			if _, err := service.ListEvents(t.Context(), other); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%v takes the token of another question: %v", other, err)
			}
		}
	}
	if seen != "12345" {
		t.Errorf("pages show %s", seen)
	}
	if _, err := service.ListEvents(t.Context(), &hdsdv1.ListEventsRequest{Kind: "NOTHING"}); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "CHECKER_LOST") {
		t.Errorf("a kind that there is not: %v", err)
	}
}

// TestKindsOfEventsAreAlike: the store's and the API's have the same numbers and names.
func TestKindsOfEventsAreAlike(t *testing.T) {
	for number, name := range storev1.EventKind_name {
		if shown := api.EventKind(number).String(); number > 0 && shown != name {
			t.Errorf("%d is %s in the store, %s in the API", number, name, shown)
		}
	}
	if len(storev1.EventKind_name) != len(hdsdv1.Event_Kind_name) {
		t.Error("one of them has more kinds")
	}
}
