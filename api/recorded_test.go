package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

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

// removals is a Backend whose history has what happened to clusters that no source has.
type removals struct {
	fleet
	events map[string]hdsdv1.Event_Kind // the latest, by cluster
}

func (k *removals) RecordedEvents(_ context.Context, q api.RecordedEventQuery) (found []api.RecordedEvent, next uint64, err error) {
	if kind, ok := k.events[q.Cluster]; ok && q.NewestFirst && strings.HasPrefix(kind.String(), q.Kind) {
		found = append(found, api.RecordedEvent{Time: noon, Kind: kind, Cluster: q.Cluster, Text: "no longer in source local; it had 2 endpoints"})
	}
	return found, 0, nil
}

// TestRemovedClustersSayWhen: if that is recorded, and the cluster did not come again since.
func TestRemovedClustersSayWhen(t *testing.T) {
	service := api.NewService(&removals{events: map[string]hdsdv1.Event_Kind{"gone": hdsdv1.Event_CLUSTER_REMOVED, "gone-unseen": hdsdv1.Event_CLUSTER_ADDED}})
	for cluster, want := range map[string]*hdsdv1.Removal{
		"gone":        {Time: timestamppb.New(noon), Text: "no longer in source local; it had 2 endpoints"},
		"gone-unseen": {}, "gone-before": {}, "web": nil, "": nil,
	} {
		answer, err := service.ListClusters(t.Context(), &hdsdv1.ListClustersRequest{Cluster: cluster})
		if err != nil || !proto.Equal(answer.GetRemoved(), want) || (answer.GetRemoved() == nil) != (want == nil) {
			t.Errorf("%q: %v, %v, want %v", cluster, answer.GetRemoved(), err, want)
		}
	}
}
